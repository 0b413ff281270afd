import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as path from "node:path";

import { onStage } from "../harness/stage";
import { until } from "../harness/until";

describe("settings in the window", () => {
  const stage = onStage();

  it("are not looked at before there is a need", async () => {
    const { window } = stage();
    await window.statusSays(/^\s*Sandbox\s*$/);
  });

  it("are summed up in the status bar, with each protection in its hover", async () => {
    const { window } = stage();
    await window.newTerminal();
    await window.statusSays("Sandbox: full");
    await window.status.hover();
    const hover = window.page.locator(".monaco-hover:visible", { hasText: "What this machine enforces" });
    await hover.waitFor();
    const text = await hover.innerText();
    for (const name of ["filesystem", "execute", "network", "unix sockets", "signals", "protected paths", "syscalls", "process tracking"]) {
      assert.ok(text.includes(name), `${name} is not in the hover: ${text}`);
    }
    assert.match(text, /landlock/);
    await window.page.mouse.move(640, 200);
  });

  it("show their mistakes, and mark terminals that keep the old ones", async () => {
    const { window, world } = stage();
    await window.command("Sandbox: Open User Settings");
    await until("the file", async () => (await window.editorText()).includes('"enabled"'));
    world.settings({ enabled: true, allow_network: false, enabeld: true });
    await window.notification("keeps what it started with").waitFor();
    await window.page.locator(".squiggly-warning, .squiggly-error").first().waitFor();
    await window.command("View: Focus Problems");
    await window.page.locator(".markers-panel", { hasText: "unknown setting" }).waitFor();
    await window.command("Terminal: Focus Terminal");
    await window.page.locator(".terminal-tab, .single-terminal-tab, .terminal-tabs-entry", { hasText: "⚠ bash (old settings)" }).first().waitFor();
  });

  it("count in the terminal that is opened in a stale one's place", async () => {
    const { window } = stage();
    await window.run("echo net=$(cat /sys/class/net/*/address 2>/dev/null | wc -l)", /^net=\d+$/m);
    await (await window.listed("keeps what it started with")).first().getByText("Reopen…").click();
    await window.page.locator(".quick-input-widget:visible .quick-input-action, .quick-input-widget:visible .monaco-button", { hasText: "OK" }).first().click();
    await until("one terminal, without the mark", async () => {
      const names = await window.page.locator(".single-terminal-tab, .terminal-tabs-entry").allInnerTexts();
      return names.length > 0 && names.every((name) => !name.includes("old settings"));
    });
    await until("a prompt", async () => /ready\$$/.test((await window.terminal()).trimEnd()));
    await window.run("exec 3<>/dev/tcp/192.0.2.1/80; echo connected=$?", /^connected=1$/m);
    assert.match(await window.terminal(), /Network is unreachable|Permission denied|Operation not permitted/);
  });

  it("are explained: the policy names the file and the line", async () => {
    const { window, world } = stage();
    await window.command("Sandbox: Show Policy");
    await window.choose("Terminals");
    await until("the policy", async () => (await window.editorText()).includes(`A terminal in ${world.project}`));
    await window.page.keyboard.press("Control+End");
    await until("the switch with its line", async () => /allow_network\s+false\s+.*settings\.json:\d+/.test(await window.editorText()));
  });

  it("are explained for one access, with the setting that would allow it", async () => {
    const { window, world } = stage();
    await window.command("Sandbox: Explain Access");
    await window.choose("Read a file");
    const input = window.page.locator(".quick-input-widget:visible input.input");
    await until("the question", async () => (await input.inputValue()) === "~/");
    await input.fill(world.secret);
    await window.page.keyboard.press("Enter");
    await window.notification(`Refused: read ${world.secret}`).getByText("Copy Setting").click();
    await until("the setting in the clipboard", async () => /additional_read_only_paths.*id_test/.test(await window.clipboard()));
  });

  it("are proved by the doctor", async () => {
    const { window } = stage();
    await window.command("Sandbox: Doctor");
    await until("what was tried", async () => /tried just now/.test(await window.editorText()));
  });

  it("of a project that ask for more are shown before they are trusted", async () => {
    const { window, world } = stage();
    await window.command("Notifications: Clear All Notifications");
    const file = path.join(world.project, ".zed", "settings.json");
    const trustFile = path.join(world.home, ".local", "state", "sandbox-sidecar", "trust.json");
    world.write(file, JSON.stringify({ terminal: { sandbox: { additional_read_only_paths: [path.dirname(world.secret)] } } }));
    await window.notification("asks for more than your sandbox settings allow").getByText("Show…").click();
    const dialog = window.page.locator(".monaco-dialog-box");
    await dialog.waitFor();
    assert.match(await dialog.innerText(), /additional_read_only_paths/);
    await dialog.getByText("Trust This Content").click();
    await until("the trust is kept", () => readFileSync(trustFile, "utf8").includes(world.project));
    await window.newTerminal();
    await window.run(`cat ${world.secret}`, new RegExp(world.secretText));
  });
});
