import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";
import type { Workbench } from "../harness/workbench";

/** Returns the names in the list of terminals. */
async function names(window: Workbench): Promise<string[]> {
  return window.page.locator(".single-terminal-tab:visible, .terminal-tabs-entry:visible").allInnerTexts();
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
    assert.deepEqual((await names(window)).filter((name) => !name.includes("bash (sandbox)")), []);
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
