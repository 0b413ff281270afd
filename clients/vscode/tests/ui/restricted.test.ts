import * as assert from "node:assert/strict";

import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";

describe("a workspace that is not trusted", () => {
  const fixture = useFixture({
    settings: { "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never" },
  });

  /**
   * VS Code asks for trust before any terminal. In a remote window it opens one
   * even if the user declines.
   */
  async function newTerminal(): Promise<void> {
    const { window } = fixture();
    await window.command("Sandbox: New Terminal");
    const dialog = window.page.locator(".monaco-dialog-box", { hasText: "Do you trust the authors" });
    await dialog.waitFor();
    await dialog.getByText("Cancel").click();
  }

  /** Waits until the status bar's hover says so. */
  async function hover(text: string): Promise<void> {
    const { window } = fixture();
    await until(`the hover ${text}`, async () => {
      await window.page.mouse.move(640, 200);
      await window.page.locator(".monaco-hover:visible").waitFor({ state: "detached" });
      await window.status.hover();
      await window.page.locator(".monaco-hover:visible", { hasText: text }).waitFor({ timeout: 5000 });
      return true;
    });
  }

  it("opens sandboxed terminals", async () => {
    const { window, world } = fixture();
    await window.page.locator(".statusbar-item", { hasText: "Restricted Mode" }).waitFor();
    await hover("This workspace is not trusted: a terminal opens only if it is sandboxed.");
    await newTerminal();
    await until("a prompt", async () => /ready\$$/.test((await window.terminal()).trimEnd()));
    assert.match(await window.run(`cat ${world.secret}; echo status=$?`, /^status=\d+$/m), /Permission denied/);
    await hover('New terminals in "project" are sandboxed. The workspace is not trusted.');
  });

  it("opens no unsandboxed terminals", async () => {
    const { window, world } = fixture();
    world.settings({ enabled: true, apply_to: "tool" });
    await window.notification("One running terminal is still sandboxed.");
    await newTerminal();
    await until("a denial", async () => (await window.terminal()).includes("Turn the sandbox on, and it opens without trust."));
    assert.doesNotMatch(await window.terminal(), /ready\$/);
    await window.page.locator(".terminal-tabs-entry", { hasText: "bash (not started)" }).waitFor();
    await hover('Not sandboxed and not trusted: no new terminal opens in "project".');
  });

  it("does not offer to trust its settings", async () => {
    const { window } = fixture();
    await window.page.keyboard.press("F1");
    const input = window.page.locator(".quick-input-widget:visible input.input");
    await input.fill(">Sandbox: Project Settings");
    await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "Open Project Settings" }).waitFor();
    assert.equal(
      await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "Trust Project Settings…" }).count(),
      0,
    );
    await window.page.keyboard.press("Escape");
  });

  it("shows the policy", async () => {
    const { window, world } = fixture();
    await window.command("Sandbox: Show Policy");
    await window.choose("Terminals");
    await until("the policy", async () => (await window.editorText()).includes(`A terminal in ${world.project}`));
  });
});
