import * as assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";

import { expectedBar, expectedSummary } from "../harness/machine";
import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";

describe("a sandbox that nobody has turned on", () => {
  const fixture = useFixture({ prepare: (world) => rmSync(world.settingsFile) });
  const settings = () => readFileSync(fixture().world.settingsFile, "utf8");
  const prompt = async () =>
    until("a prompt", async () => (await fixture().window.terminal()).trimEnd().endsWith("ready$"));

  it("is turned on by the first terminal's question, before that opens", async () => {
    const { window, world } = fixture();
    await window.command("Sandbox: New Terminal");
    const dialog = window.page.locator(".monaco-dialog-box", { hasText: "Terminals are not sandboxed" });
    await dialog.waitFor();
    assert.equal(await window.tabs(), 0);
    await dialog.getByText("Turn On", { exact: true }).click();
    await window.notification("The sandbox is on.");
    assert.match(settings(), /"mode": "standard"/);
    await prompt();
    assert.match(await window.run(`cat ${world.secret}; echo status=$?`, /^status=1$/m), /Permission denied/);
    await window.waitForStatus(expectedBar("1 of 1 terminal"));
    assert.equal(await window.page.locator(".notification-list-item", { hasText: "Turn it on for" }).count(), 0);
  });

  it("is limited to tools by a command", async () => {
    const { window } = fixture();
    await window.command("Sandbox: Sandbox Tools Only");
    await until("the settings", () => /"apply_to": "tool"/.test(settings()));
    await window.notification("The sandbox is on.");
    await window.command("Terminal: Kill All Terminals");
    await window.waitForStatus(expectedSummary() === "full" ? "Sandbox: tools only" : "Sandbox: partly");
  });

  it("opens an unsandboxed terminal only if the user says so, and names it so", async () => {
    const { window } = fixture();
    await window.command("Sandbox: New Terminal");
    const dialog = window.page.locator(".monaco-dialog-box", { hasText: "Terminals are not sandboxed" });
    await dialog.getByText("Cancel").click();
    await dialog.waitFor({ state: "detached" });
    assert.equal(await window.tabs(), 0);
    await window.command("Sandbox: New Terminal");
    await dialog.getByText("Open Unsandboxed").click();
    await prompt();
    await window.waitForStatus("Sandbox: 0 of 1 terminal, not this one");
    const tab = window.page.locator(".single-terminal-tab, .terminal-tabs-entry", { hasText: "bash (not sandboxed)" });
    await tab.first().waitFor();
    assert.equal(await window.page.locator(".panel .codicon-unlock").count(), 1);
    await window.command("Terminal: Kill All Terminals");
  });

  it("is turned off by a command, which asks", async () => {
    const { window } = fixture();
    await window.command("Sandbox: Turn Off…");
    await window.page.locator(".monaco-dialog-box").getByText("Turn Off", { exact: true }).click();
    await window.notification("The sandbox is off for new terminals and tools.");
    await window.waitForStatus("Sandbox: off");
    assert.match(settings(), /"enabled": false/);
  });

  it("has a mode that a command chooses", async () => {
    const { window } = fixture();
    await window.command("Sandbox: Choose Mode…");
    await window.choose("strict");
    await window.notification("The mode is strict");
    assert.match(settings(), /"mode": "strict"/);
    await until("it is on", () => !settings().includes('"enabled": false'));
    await window.waitForStatus(expectedSummary() === "full" ? "Sandbox: tools only" : "Sandbox: partly");
  });

  it("is turned on again for both by a command", async () => {
    const { window } = fixture();
    await window.command("Sandbox: Turn On…");
    await window.answer("Turn the sandbox on for:", "Terminals and Tools");
    await window.waitForStatus(expectedSummary() === "full" ? "Sandbox: on" : "Sandbox: partly");
    assert.match(settings(), /"mode": "strict"/);
    assert.match(settings(), /\/\/ strict: no network/);
  });
});

describe("a terminal with a name that the user gave", () => {
  const fixture = useFixture();

  it("keeps it, also if the settings change", async () => {
    const { window, world } = fixture();
    await window.newTerminal();
    await window.command("Terminal: Rename...");
    await window.enter("Enter terminal name", "mine");
    const tab = window.page.locator(".single-terminal-tab, .terminal-tabs-entry", { hasText: "mine" });
    await tab.first().waitFor();
    world.settings({ enabled: true, allow_network: false });
    await window.notification("still uses the old ones");
    await window.status.hover();
    await window.page.locator(".monaco-hover:visible", { hasText: "It uses old settings." }).waitFor();
    assert.match(await tab.first().innerText(), /^\s*mine\s*$/);
  });

  it("is split into another sandboxed one", async () => {
    const { window, world } = fixture();
    await window.command("Sandbox: Split Terminal (Sandboxed)");
    await window.waitForStatus(expectedBar("2 of 2 terminals"));
    assert.match(await window.run(`cat ${world.secret}; echo status=$?`, /^status=1$/m), /Permission denied/);
  });
});
