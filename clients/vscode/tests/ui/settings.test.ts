import * as assert from "node:assert/strict";
import { chmodSync, readFileSync } from "node:fs";
import * as path from "node:path";

import { diagnose, expectedBar, expectedSummary } from "../harness/machine";
import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";
import type { Workbench } from "../harness/workbench";
import { requireEnv, type World } from "../harness/world";

/**
 * Checks that the status bar's hover has at most three lines, none of them
 * folded, and links to commands only. Returns its lines.
 */
async function hovered(window: Workbench): Promise<string[]> {
  await window.status.hover();
  const hover = window.page.locator(".monaco-hover:visible", { hasText: "All Commands" });
  await hover.waitFor();
  const paragraphs = await hover.locator("p").all();
  const boxes = await Promise.all(paragraphs.map((paragraph) => paragraph.boundingBox()));
  const lines = await Promise.all(paragraphs.map((paragraph) => paragraph.innerText()));
  for (const [i, box] of boxes.entries()) assert.ok((box?.height ?? 0) < 30, `two lines: ${lines[i]}`);
  assert.equal(lines.pop(), "Policy | Settings | Doctor | All Commands");
  assert.ok(lines.length <= 3, lines.join("\n"));
  assert.equal(await hover.locator("a").count(), 4);
  await window.page.mouse.move(640, 200);
  await hover.waitFor({ state: "hidden" });
  return lines;
}

/**
 * A program that starts the sidecar without namespaces and control groups, so
 * that it has fewer protections.
 */
const elsewhere = (world: World) => path.join(world.home, "sidecar-elsewhere");
const startElsewhere = `#!/bin/sh
sidecar=${requireEnv("SIDECAR_BINARY")}
unshare --user --map-root-user true || exec "$sidecar" "$@" # it is so here
exec unshare --user --map-root-user sh -c '
	echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$0" "$@"
' "$sidecar" "$@"
`;

describe("settings in the window", () => {
  const fixture = useFixture();

  it("are not read before a sidecar is needed", async () => {
    const { window } = fixture();
    await window.waitForStatus(/^\s*Sandbox\s*$/);
    assert.deepEqual(await hovered(window), [
      "Your settings say whether it is on. The first terminal or tool reads them.",
    ]);
  });

  it("are summarized in the status bar, whose hover states what is so", async () => {
    const { window } = fixture();
    await window.newTerminal();
    await window.waitForStatus(expectedBar("1 of 1 terminal"));
    const lines = await hovered(window);
    const state = expectedSummary() === "full" ? /^This terminal is sandboxed\.$/ : /^This terminal is (partly )?sandboxed\./;
    assert.match(lines[0] ?? "", state);
    assert.equal(lines[1], "Sandboxed terminals in this window: 1 of 1.");
    assert.match(lines[2] ?? "", /^New terminals and tools in "project" are sandboxed\./);
  });

  it("show their problems, and mark terminals with old settings", async () => {
    const { window, world } = fixture();
    await window.command("Sandbox: Open User Settings");
    await until("the file", async () => (await window.editorText()).includes('"enabled"'));
    world.settings({ enabled: true, allow_network: false, enabeld: true });
    await window.notification("still uses the old ones");
    await window.page.locator(".squiggly-warning, .squiggly-error").first().waitFor();
    await window.command("View: Focus Problems");
    await window.page.locator(".markers-panel", { hasText: "unknown setting" }).waitFor();
    await window.command("Terminal: Focus Terminal");
    await window.page
      .locator(".terminal-tab, .single-terminal-tab, .terminal-tabs-entry", { hasText: "⚠ bash (old settings)" })
      .first()
      .waitFor();
  });

  it("apply to a reopened terminal", async () => {
    const { window } = fixture();
    await window.run("echo net=$(cat /sys/class/net/*/address 2>/dev/null | wc -l)", /^net=\d+$/m);
    await window.answer("still uses the old ones", "Reopen…");
    await window.page
      .locator(".quick-input-widget:visible .quick-input-action, .quick-input-widget:visible .monaco-button", {
        hasText: "OK",
      })
      .first()
      .click();
    await until("one terminal, without the mark", async () => {
      const names = await window.page.locator(".single-terminal-tab, .terminal-tabs-entry").allInnerTexts();
      return names.length > 0 && names.every((name) => !name.includes("old settings"));
    });
    await until("a prompt", async () => /ready\$$/.test((await window.terminal()).trimEnd()));
    await window.run("exec 3<>/dev/tcp/192.0.2.1/80; echo connected=$?", /^connected=1$/m);
    assert.match(await window.terminal(), /Network is unreachable|Permission denied|Operation not permitted/);
  });

  it("are named in the policy with file and line", async () => {
    const { window, world } = fixture();
    await window.command("Sandbox: Show Policy");
    await window.choose("Terminals");
    const policy = await window.wholeEditor(`A terminal in ${world.project}`);
    assert.match(policy, /allow_network\s+false\s+.*settings\.json:\d+/);
  });

  it("are explained for one access, with the setting that would allow it", async () => {
    const { window, world } = fixture();
    await window.command("Sandbox: Explain Access");
    await window.choose("Terminals");
    await window.choose("Read a file");
    const input = window.input("For example: ");
    // Paths are completed, from the project, too.
    world.write(path.join(world.project, "src", "deep", "main.c"), "");
    await input.fill("src/");
    await window.choose("src/deep/");
    await window.choose("src/deep/main.c");
    const dialog = window.page.locator(".monaco-dialog-box");
    await dialog.getByText(/"~\/project\/src\/deep\/main\.c"/).waitFor();
    await dialog.getByText(/^Allowed: /).waitFor();
    await window.page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });

    await window.command("Sandbox: Explain Access");
    await window.choose("Terminals");
    await window.choose("Read a file");
    await input.fill(world.secret);
    await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "id_test" }).first().waitFor();
    await window.page.keyboard.press("Enter");
    await dialog.getByText(/^Refused: .*id_test/).waitFor();
    await dialog.getByText("Copy Setting").click();
    await until("the setting in the clipboard", async () =>
      /additional_read_only_paths.*id_test/.test(await window.clipboard()),
    );
  });

  it("are tested by the doctor", async () => {
    const { window } = fixture();
    await window.command("Sandbox: Doctor");
    await until("what holds", async () => /^This machine (enforces|does not)/.test(await window.editorText()));
    await until("what was tried", async () => {
      await window.page.keyboard.press("Control+End"); // the editor renders what is in view
      return /held/.test(await window.editorText());
    });
  });

  it("keep an audit log if they say so", async () => {
    const { window, world } = fixture();
    await window.command("Sandbox: Show Audit Log");
    await until("what is off", async () => /the setting "audit" is "off"/.test(await window.editorText()));
    await window.command("View: Close All Editors");
    world.settings({ enabled: true, allow_network: false, audit: "file" });
    await window.newTerminal();
    await window.command("Sandbox: Show Audit Log");
    await until("a line", async () => /terminal in/.test(await window.editorText()));
  });

  it("of a project that request more are shown before they are trusted", async () => {
    const { window, world } = fixture();
    await window.command("Notifications: Clear All Notifications");
    const file = path.join(world.project, ".zed", "settings.json");
    const trustFile = path.join(world.home, ".local", "state", "sandbox-sidecar", "trust.json");
    world.write(
      file,
      JSON.stringify({ terminal: { sandbox: { additional_read_only_paths: [path.dirname(world.secret)] } } }),
    );
    await window.answer("asks for more than your sandbox settings allow", "Show…");
    const dialog = window.page.locator(".monaco-dialog-box");
    await dialog.waitFor();
    assert.match(await dialog.innerText(), /additional_read_only_paths/);
    await dialog.getByText("Trust This Content").click();
    await until("the trust is kept", () => readFileSync(trustFile, "utf8").includes(world.project));
    await window.newTerminal();
    await window.run(`cat ${world.secret}`, new RegExp(world.secretText));
  });
});

describe("a machine without some protections", () => {
  const fixture = useFixture({
    machine: { "sandboxSidecar.path": "~/sidecar-elsewhere" },
    prepare: (world) => {
      world.write(elsewhere(world), startElsewhere);
      chmodSync(elsewhere(world), 0o755);
    },
  });

  it("is marked in the status bar, whose hover names what is missing", async () => {
    const { window, world } = fixture();
    const diagnoses = diagnose(elsewhere(world));
    const paths = diagnoses.find(({ name }) => name === "protected_paths");
    assert.equal(paths?.status, "degraded", "everything is protected there, too, so nothing would be tested");
    await window.newTerminal();
    await window.waitForStatus("Sandbox: partly, 1 of 1 terminal");
    const lines = await hovered(window);
    assert.match(lines[0] ?? "", /^This terminal is partly sandboxed\. Not fully: (.*, )?protected paths, /);
  });
});
