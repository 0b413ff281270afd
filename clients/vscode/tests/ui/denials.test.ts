import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as path from "node:path";

import { onStage } from "../harness/stage";
import { until } from "../harness/until";

/** A project's settings as people write them. */
const ofTheTeam = `// of the team
{
  "tab_size": 4, // four, not two
  "terminal": {
    "sandbox": {
      "allow_network": false, /* why not */
    },
  },
}
`;

describe("what the sandbox refuses", () => {
  const stage = onStage({
    prepare: (world) => {
      world.write(path.join(world.home, "notes", "list.txt"), "what-stands-in-the-notes\n");
      world.write(path.join(world.home, "more", "list.txt"), "what-stands-in-more\n");
      world.write(path.join(world.home, "third", "list.txt"), "what-stands-in-the-third\n");
      world.write(path.join(world.project, ".zed", "settings.json"), ofTheTeam);
    },
  });

  it("is told with the setting that would allow it, which can be copied", async () => {
    const { window, world } = stage();
    const file = path.join(world.home, "notes", "list.txt");
    await window.newTerminal();
    assert.match(await window.run(`echo x >>${file}; echo status=$?`, /^status=\d+$/m), /Permission denied/);
    await window.notification(`refused bash to write ${file}`).getByText("Copy Setting").click();
    await until("the setting in the clipboard", async () => /additional_read_write_paths.*notes/.test(await window.clipboard()));
  });

  it("is told once, however often it happens, and listed", async () => {
    const { window, world } = stage();
    const file = path.join(world.home, "notes", "list.txt");
    await window.run(`clear; echo x >>${file}; echo x >>${file}; echo twi''ce`, /^twice$/m);
    await window.command("Sandbox: Show What Was Refused");
    await window.page.locator(".quick-input-list .monaco-list-row", { hasText: `to write ${file}` }).first().waitFor();
    assert.equal(await window.page.locator(".quick-input-list .monaco-list-row", { hasText: `to write ${file}` }).count(), 1);
    await window.page.keyboard.press("Escape");
    assert.equal(await window.notification(`to write ${file}`).count(), 0);
  });

  it("works in a new terminal once the user has allowed it", async () => {
    const { window, world } = stage();
    const file = path.join(world.home, "more", "list.txt");
    await window.run(`clear; echo x >>${file}; echo thi''rd`, /^third$/m);
    await window.notification(`refused bash to write ${file}`).getByText("Allow…").click();
    await window.choose("For all my projects");
    await until("the setting is written", () => readFileSync(world.settingsFile, "utf8").includes("more"));
    await window.notification("counts in terminals that are opened from now on").waitFor();
    await until("it is allowed", async () => {
      await window.newTerminal();
      return until("the file is written", async () => {
        await window.run(`clear; echo written >>${file}; echo wro''te`, /^wrote$/m);
        return readFileSync(file, "utf8").includes("written");
      }, 5).catch(() => false);
    });
    assert.match(await window.run(`clear; echo x >>${path.join(world.home, "notes", "list.txt")}; echo sti''ll`, /^still$/m), /Permission denied/);
  });

  it("works in a new terminal of this project once the user has allowed it there, and the file keeps its comments", async () => {
    const { window, world } = stage();
    const file = path.join(world.home, "third", "list.txt");
    const settings = path.join(world.project, ".zed", "settings.json");
    await window.run(`clear; echo x >>${file}; echo thi''rd`, /^third$/m);
    await window.notification(`refused bash to write ${file}`).getByText("Allow…").click();
    await window.choose("For this project");
    const dialog = window.page.locator(".monaco-dialog-box");
    await dialog.waitFor();
    assert.match(await dialog.innerText(), /additional_read_write_paths.*third/);
    await dialog.getByText("Trust This Content").click();
    await window.notification(`${settings} is trusted`).waitFor();

    const text = readFileSync(settings, "utf8");
    for (const comment of ["// of the team", "// four, not two", "/* why not */"]) assert.ok(text.includes(comment), `${comment} has gone: ${text}`);
    assert.match(text, /"tab_size": 4/);
    assert.match(text, /"additional_read_write_paths": \[[^\]]*third/);
    assert.doesNotMatch(readFileSync(world.settingsFile, "utf8"), /third/);

    // The terminal that was refused stays as it is; a new one may write.
    assert.match(await window.run(`clear; echo x >>${file}; echo ol''d`, /^old$/m), /Permission denied/);
    await window.newTerminal();
    await window.run(`clear; echo written >>${file}; echo status=$?`, /^status=0$/m);
    assert.match(readFileSync(file, "utf8"), /^what-stands-in-the-third\nwritten\n$/);
  });

  it("is no offer where credentials lie", async () => {
    const { window, world } = stage();
    await window.run(`clear; echo x >>${world.secret}; echo la''st`, /^last$/m);
    const told = window.notification(`refused bash to write ${world.secret}`);
    await told.waitFor();
    assert.equal(await told.getByText("Allow…").count(), 0);
  });
});

describe("what the sandbox asks about", () => {
  const stage = onStage({
    prepare: (world) => {
      world.settings({ enabled: true, on_denied: "ask" });
      world.write(path.join(world.home, "notes", "list.txt"), "what-stands-in-the-notes\n");
      world.write(path.join(world.home, "more", "list.txt"), "what-stands-in-more\n");
    },
  });

  it("is refused when the user denies it", async () => {
    const { window, world } = stage();
    const file = path.join(world.home, "notes", "list.txt");
    await window.newTerminal();
    await window.type(`cat ${file}; echo status=$?`);
    await window.notification(`cat wants to read ${file}`).getByText("Deny").click();
    await until("the refusal", async () => /^status=1$/m.test(await window.terminal()));
    assert.match(await window.terminal(), /Permission denied/);
  });

  it("works at once when the user allows it, for as long as that is to hold", async () => {
    const { window, world } = stage();
    const file = path.join(world.home, "more", "list.txt");
    await window.type(`clear; cat ${file}`);
    await window.notification(`cat wants to read ${file}`).getByText("Allow…").click();
    await window.choose("Until the session ends");
    await until("the text", async () => (await window.terminal()).includes("what-stands-in-more"));
    // It is not asked again in this session.
    await window.run(`clear; cat ${file}; echo aga''in`, /what-stands-in-more\nagain$/m);
  });
});
