import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";
import type { Workbench } from "../harness/workbench";

/** Returns how many terminals are side by side in the panel. */
async function split(window: Workbench): Promise<number> {
  return window.page.locator(".terminal-group:visible .split-view-view.visible .terminal-wrapper:visible").count();
}

/** Waits until the list has so many terminals, and so many of them are sandboxed. */
async function counted(window: Workbench, total: number, sandboxed: number): Promise<void> {
  await window.waitForStatus(new RegExp(`${sandboxed} of ${total} terminal`));
}

describe("the default terminal", () => {
  const fixture = useFixture();
  const key = "terminal.integrated.defaultProfile.linux";
  const setting = () => {
    const file = path.join(fixture().world.root, "data", "User", "settings.json");
    return (JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>)[key];
  };

  it("is split into a sandboxed one by the key and the button, if it is sandboxed", async () => {
    const { window } = fixture();
    await window.newTerminal();
    await counted(window, 1, 1);
    await window.focusTerminal();
    await window.page.keyboard.press("Control+Shift+5");
    await window.notification("VS Code splits into the default terminal only");
    await counted(window, 2, 2);
    // As with VS Code's own "+", the Alt key makes it a split.
    await window.page.locator('.panel [aria-label^="Sandbox: New Terminal"], .panel [aria-label^="New Terminal"]').first().click({ modifiers: ["Alt"] });
    await counted(window, 3, 3);
  });

  it("is VS Code's own before the user decides", async () => {
    const { window } = fixture();
    await window.command("Terminal: Split Terminal");
    await counted(window, 4, 3);
    await window.command("Terminal: Kill All Terminals");
    await until("no terminal", async () => (await window.tabs()) === 0);
    assert.equal(setting(), undefined);
  });

  it("is sandboxed once the user has decided: new, split, and by its key", async () => {
    const { window } = fixture();
    await window.command("Sandbox: Make Sandboxed Terminals the Default");
    await window.notification("New and split terminals are sandboxed ones by default.");
    assert.equal(setting(), "Sandboxed Terminal");
    await window.command("Notifications: Clear All Notifications");
    await window.command("Terminal: Create New Terminal");
    await counted(window, 1, 1);
    await window.command("Terminal: Split Terminal");
    await counted(window, 2, 2);
    assert.equal(await split(window), 2);
    await window.focusTerminal();
    await window.page.keyboard.press("Control+Shift+5");
    await counted(window, 3, 3);
    assert.equal(await split(window), 3);
    await window.command("Sandbox: Split Terminal (Sandboxed)");
    await counted(window, 4, 4);
    assert.equal(await split(window), 4);
  });

  it("asks before it opens without a sandbox", async () => {
    const { window, world } = fixture();
    world.settings({ enabled: false });
    await window.notification("4 running terminals are still sandboxed");
    await window.waitForStatus("off for new terminals");
    for (const command of ["Terminal: Create New Terminal", "Terminal: Split Terminal"]) {
      await window.command(command);
      const dialog = window.page.locator(".monaco-dialog-box", { hasText: "Terminals are not sandboxed" });
      await dialog.getByText("Cancel").click();
      await dialog.waitFor({ state: "detached" });
      // VS Code says so, and not that the profile is broken.
      await window.notification("No terminal was opened.");
      await window.command("Notifications: Clear All Notifications");
    }
    await counted(window, 4, 4);
    world.settings({ enabled: true });
    await window.waitForStatus(/^(?!.*off for new).*4 of 4/);
    await window.command("Terminal: Kill All Terminals");
    await until("no terminal", async () => (await window.tabs()) === 0);
    await window.command("Notifications: Clear All Notifications");
    await window.command("Terminal: Create New Terminal");
    await window.command("Terminal: Split Terminal");
    await counted(window, 2, 2);
  });

  it("is as before after the undo", async () => {
    const { window } = fixture();
    await window.command("Sandbox: Undo Making Sandboxed Terminals the Default");
    await window.notification("The default terminal is as before.");
    assert.equal(setting(), undefined);
    await window.command("Terminal: Create New Terminal");
    await counted(window, 3, 2);
    await window.command("Notifications: Clear All Notifications");
    await window.command("Sandbox: Undo Making Sandboxed Terminals the Default");
    await window.notification("nothing changes");
  });
});
