import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";
import { diagnose, refusedChange, requireProtection } from "../harness/machine";
import { until } from "../harness/until";

/** A project's settings with comments, as people write them. */
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

describe("a denial", () => {
  const fixture = useFixture({
    prepare: (world) => {
      world.write(path.join(world.home, "notes", "list.txt"), "content-of-the-notes\n");
      world.write(path.join(world.home, "more", "list.txt"), "content-of-more\n");
      world.write(path.join(world.home, "third", "list.txt"), "content-of-the-third\n");
      world.write(path.join(world.home, "books", "list.txt"), "content-of-the-books\n");
      world.write(path.join(world.home, "brief", "list.txt"), "content-of-the-brief\n");
      world.directory("home/crowd");
      world.write(path.join(world.project, ".zed", "settings.json"), ofTheTeam);
    },
  });

  it("is reported with the setting that would allow it, which can be copied", async () => {
    const { window, world } = fixture();
    const file = path.join(world.home, "notes", "list.txt");
    await window.newTerminal();
    assert.match(await window.run(`echo x >>${file}; echo status=$?`, /^status=\d+$/m), refusedChange());
    await window.answer(`refused to let "bash" write "${file}"`, "Copy Setting");
    await until("the setting in the clipboard", async () =>
      /additional_read_write_paths.*notes/.test(await window.clipboard()),
    );
  });

  it("is reported once, and listed with its count below its setting", async () => {
    const { window, world } = fixture();
    const file = path.join(world.home, "notes", "list.txt");
    await window.run(`clear; echo x >>${file}; echo x >>${file}; echo twi''ce`, /^twice$/m);
    const rows = await window.refused("bash: write ~/…/list.txt");
    await rows.first().waitFor();
    // A repeated denial is sent again after a second, with its count.
    await until("its number in the list", async () => /\d+ times/.test(await rows.first().innerText()));
    assert.equal(await rows.count(), 1);
    await (await window.refused(/notes[^"]*"\s*write/)).first().waitFor();
    assert.equal(await (await window.listed(`write "${file}"`)).count(), 0);
  });

  it("is allowed from the list, with one notification", async () => {
    const { window, world } = fixture();
    await window.command("Notifications: Clear All Notifications");
    const group = (await window.refused(/notes[^"]*"\s*write/)).first();
    await group.hover();
    await group.getByRole("button", { name: "Allow…" }).click();
    await window.choose("For all my projects");
    await window.notification("It applies to new terminals");
    assert.match(readFileSync(world.settingsFile, "utf8"), /"additional_read_write_paths": \[[^\]]*notes/);
    await until("the terminal is old", async () => {
      await window.status.hover();
      return (await window.page.locator(".monaco-hover:visible", { hasText: "It uses old settings." }).count()) > 0;
    });
    const all = await window.listed(/./);
    assert.equal(await all.count(), 1, (await all.allInnerTexts()).join("\n"));
    await window.command("Notifications: Clear All Notifications");
    await window.newTerminal();
  });

  it("can be allowed for reading, in new terminals", async () => {
    const { window, world } = fixture();
    const file = path.join(world.home, "books", "list.txt");
    assert.match(await window.run(`clear; cat ${file}; echo before=$?`, /^before=1$/m), /Permission denied/);
    await window.answer(`refused to let "cat" read "${file}"`, "Allow…");
    await window.choose("For all my projects");
    await until("the setting is written", () =>
      /"additional_read_only_paths": \[[^\]]*books/.test(readFileSync(world.settingsFile, "utf8")),
    );

    // The old terminal keeps its policy. A new one may read, and nothing else.
    assert.match(await window.run(`clear; cat ${file}; echo ol''d`, /^old$/m), /Permission denied/);
    await until("it is allowed", async () => {
      await window.newTerminal();
      return /^content-of-the-books\nafter=0$/m.test(
        await window.run(`clear; cat ${file}; echo after=$?`, /^after=\d+$/m),
      );
    });
    assert.match(await window.run(`clear; echo x >>${file}; echo written=$?`, /^written=1$/m), refusedChange());
    // Or the next refusal could be in one notification with this.
    await window.notification(`refused to let "bash" write "${file}"`);
  });

  it("can be allowed for writing, in new terminals", async () => {
    const { window, world } = fixture();
    const file = path.join(world.home, "more", "list.txt");
    await window.run(`clear; echo x >>${file}; echo thi''rd`, /^third$/m);
    await window.answer(`refused to let "bash" write "${file}"`, "Allow…");
    await window.choose("For all my projects");
    await until("the setting is written", () => readFileSync(world.settingsFile, "utf8").includes("more"));
    await window.notification("It applies to new terminals");
    await until("it is allowed", async () => {
      await window.newTerminal();
      return until(
        "the file is written",
        async () => {
          await window.run(`clear; echo written >>${file}; echo wro''te`, /^wrote$/m);
          return readFileSync(file, "utf8").includes("written");
        },
        5,
      ).catch(() => false);
    });
    assert.match(
      await window.run(`clear; echo x >>${path.join(world.home, "books", "list.txt")}; echo sti''ll`, /^still$/m),
      refusedChange(),
    );
  });

  it("can be allowed in the project's settings, which keep their comments", async () => {
    const { window, world } = fixture();
    const file = path.join(world.home, "third", "list.txt");
    const settings = path.join(world.project, ".zed", "settings.json");
    await window.run(`clear; echo x >>${file}; echo thi''rd`, /^third$/m);
    await window.answer(`refused to let "bash" write "${file}"`, "Allow…");
    await window.choose("For this project");
    const dialog = window.page.locator(".monaco-dialog-box");
    await dialog.waitFor();
    assert.match(await dialog.innerText(), /additional_read_write_paths.*third/);
    await dialog.getByText("Trust This Content").click();
    await window.notification('"~/project/.zed/settings.json" is trusted');

    const text = readFileSync(settings, "utf8");
    for (const comment of ["// of the team", "// four, not two", "/* why not */"])
      assert.ok(text.includes(comment), `${comment} has gone: ${text}`);
    assert.match(text, /"tab_size": 4/);
    assert.match(text, /"additional_read_write_paths": \[[^\]]*third/);
    assert.doesNotMatch(readFileSync(world.settingsFile, "utf8"), /third/);

    // The old terminal keeps its policy. A new one may write.
    assert.match(await window.run(`clear; echo x >>${file}; echo ol''d`, /^old$/m), refusedChange());
    await window.newTerminal();
    await window.run(`clear; echo written >>${file}; echo status=$?`, /^status=0$/m);
    assert.match(readFileSync(file, "utf8"), /^content-of-the-third\nwritten\n$/);
  });

  it("can be allowed with its whole folder", async () => {
    const { window, world } = fixture();
    for (const name of ["one", "two"]) world.write(path.join(world.home, "shelf", name), `content-of-${name}\n`);
    await window.command("Notifications: Clear All Notifications");
    await window.run(`clear; cat ${world.home}/shelf/one ${world.home}/shelf/two; echo before=$?`, /^before=1$/m);
    // One command is one notification.
    await window.notification("The sandbox refused 2 operations.");
    await window.answer("The sandbox refused 2 operations.", "Show…");
    const group = (await window.refused(/shelf/)).first();
    await group.hover();
    await group.getByRole("button", { name: "Allow…" }).click();
    await window.page.locator(".quick-input-list", { hasText: /its folder: "~\/shelf"/ }).waitFor();
    await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "For all my projects" }).nth(1).click();
    await until("the setting is written", () =>
      /"additional_read_only_paths": \[[^\]]*\/shelf"/.test(readFileSync(world.settingsFile, "utf8")),
    );
    await until("both are allowed", async () => {
      await window.newTerminal();
      return /^content-of-one\ncontent-of-two$/m.test(
        await window.run(`clear; cat ${world.home}/shelf/one ${world.home}/shelf/two; echo after=$?`, /^after=\d+$/m),
      );
    });
    await window.command("Notifications: Clear All Notifications");
  });

  it("can be allowed until the window closes, which writes nothing", async () => {
    const { window, world } = fixture();
    const file = path.join(world.home, "brief", "list.txt");
    const before = readFileSync(world.settingsFile, "utf8");
    await window.command("Notifications: Clear All Notifications");
    await window.run(`clear; cat ${file}; echo before=$?`, /^before=1$/m);
    await window.answer(`refused to let "cat" read "${file}"`, "Allow…");
    await window.choose("Until this window closes");
    await window.notification("until this window closes");
    assert.match(await window.run(`clear; cat ${file}; echo old=$?`, /^old=1$/m), /Permission denied/);
    await window.newTerminal();
    await window.run(`clear; cat ${file}; echo after=$?`, /^content-of-the-brief\nafter=0$/m);
    assert.equal(readFileSync(world.settingsFile, "utf8"), before);
    await window.command("Notifications: Clear All Notifications");
  });

  it("of credentials offers no setting, and says why", async () => {
    const { window, world } = fixture();
    for (const [line, what, done, row] of [
      [`cat ${world.secret}`, 'let "cat" read', "read", "cat: read ~/.ssh"],
      [`echo x >>${world.secret}`, 'let "bash" write', "written", "bash: write ~/.ssh"],
    ] as const) {
      await window.run(`clear; ${line}; echo secret-${done}=$?`, new RegExp(`^secret-${done}=1$`, "m"));
      const notification = await window.notification(`refused to ${what} "${world.secret}"`);
      for (const button of ["Allow…", "Copy Setting"])
        assert.equal(await notification.getByText(button).count(), 0, button);
      await notification.getByText("Why?").click();
      const chosen = window.page.locator(".pane-body .monaco-list-row.selected", { hasText: row });
      await chosen.waitFor();
      assert.equal(await chosen.getByRole("button").count(), 0);
      await window.page.locator(".pane-body .monaco-list-row", { hasText: "Careful: SSH keys" }).first().waitFor();
    }
  });

  it("among a hundred is part of a summary", async () => {
    const { window, world } = fixture();
    const dir = path.join(world.home, "crowd");
    await window.command("Notifications: Clear All Notifications");
    await window.run(`clear; for i in $(seq 100); do echo x >>${dir}/$i; done 2>/dev/null; echo cro''wd`, /^crowd$/m);
    await window.notification(/The sandbox refused ([1-9]\d|1\d\d) operations\./);
    await (await window.refused(/crowd/)).first().waitFor();
    const notification = await window.listed("The sandbox refused");
    await notification.first().waitFor();
    const all = await notification.allInnerTexts();
    assert.ok(all.length <= 4, all.join("\n"));
  });
});

describe("a limit that is reached", () => {
  const fixture = useFixture({
    prepare: (world) => world.settings({ enabled: true, limits: { processes: 20 } }),
  });

  it("is reported once, in one short notification", async () => {
    // Nothing limits root's processes without a cgroup.
    const limited = diagnose().find(({ name }) => name === "limits")?.mechanism.includes("RLIMIT_NPROC") === true;
    const { window } = fixture();
    await window.newTerminal();
    await window.run("bash -c 'for i in $(seq 60); do sleep 3 & done; wait'; echo do''ne", /^done$/m);
    if (limited) await window.notification("beyond 20");
    const told = await (await window.listed("beyond 20")).locator(".notification-list-item-message").allInnerTexts();
    assert.equal(told.length, limited ? 1 : 0, told.join("\n"));
    for (const text of told) assert.ok(text.trim().length <= 100, text);
  });
});

describe("a question about an access", () => {
  const fixture = useFixture({
    prepare: (world) => {
      world.settings({ enabled: true, on_denied: "ask", allow_network: false });
      world.write(path.join(world.home, "notes", "list.txt"), "content-of-the-notes\n");
      world.write(path.join(world.home, "wide", "list.txt"), "content-of-wide\n");
      world.write(path.join(world.home, "wide", "below", "list.txt"), "content-below\n");
      world.write(path.join(world.home, "more", "list.txt"), "content-of-more\n");
      world.write(path.join(world.home, "third", "list.txt"), "content-of-the-third\n");
    },
  });

  it("refuses the access if the user denies it", async () => {
    const { window, world } = fixture();
    const tail = "home/notes/list.txt";
    const file = path.join(world.root, tail);
    await window.newTerminal();
    await window.type(`cat ${file}; echo status=$?`);
    const asked = await window.notification(new RegExp(`"cat" wants to read ".*${tail}"`));
    assert.equal(await asked.getByRole("button", { name: "Cancel" }).count(), 0);
    await window.answer(new RegExp(`"cat" wants to read ".*${tail}"`), "Answer…");
    await window.choose("Don't allow");
    await until("the denial", async () => /^status=1$/m.test(await window.terminal()));
    assert.match(await window.terminal(), /Permission denied/);
  });

  it("allows the access at once, for the chosen time", async () => {
    const { window, world } = fixture();
    const tail = "home/more/list.txt";
    const file = path.join(world.root, tail);
    await window.type(`clear; cat ${file}`);
    await window.answer(new RegExp(`"cat" wants to read ".*${tail}"`), "Answer…");
    await window.choose("Until the session ends");
    await until("the text", async () => (await window.terminal()).includes("content-of-more"));
    // The session is not asked again.
    await window.run(`clear; cat ${file}; echo aga''in`, /content-of-more\nagain$/m);
  });

  it("allows a whole directory until the session ends", async () => {
    const { window, world } = fixture();
    const tail = "home/wide/list.txt";
    await window.newTerminal();
    await window.type(`clear; cat ${path.join(world.root, tail)}`);
    await window.answer(new RegExp(`"cat" wants to read ".*${tail}"`), "Answer…");
    const row = window.page.locator(".quick-input-list .monaco-list-row", { hasText: "Its directory" });
    await until("what it opens", async () =>
      /"~\/wide".*reads everything in it/s.test((await row.textContent()) ?? ""),
    );
    await window.choose("Its directory, for this session");
    await until("the text", async () => (await window.terminal()).includes("content-of-wide"));
    // What is below it is not asked about.
    await window.run(`clear; cat ${world.home}/wide/below/list.txt; echo mo''re`, /content-below\nmore$/m);
  });

  it("stays until it is answered: in the bar, in the terminal's name and as a notification", async () => {
    const { window, world } = fixture();
    const tail = "home/third/list.txt";
    const file = path.join(world.root, tail);
    await window.run("clear", /ready\$$/);
    await window.type(`cat ${file}; echo status=$?`);
    const question = window.page.locator(".notifications-toasts .notification-list-item", { hasText: "wants to read" });
    await question.waitFor();
    const bar = window.page.locator(".statusbar-item", { hasText: "1 question" });
    await bar.waitFor();
    const tab = window.page.locator(".single-terminal-tab, .terminal-tabs-entry", { hasText: "? cat (question)" });
    await tab.first().waitFor();
    // Another notification goes by itself meanwhile.
    await window.command("Sandbox: Show Files to Check");
    const other = window.page.locator(".notifications-toasts .notification-list-item", { hasText: "No session has" });
    await other.waitFor();
    await other.waitFor({ state: "hidden" });
    assert.ok(await question.isVisible());
    await bar.click();
    await window.choose("Once");
    await until("the text", async () => /content-of-the-third\nstatus=0$/m.test(await window.terminal()));
    for (const gone of [question, bar, tab.first()]) await gone.waitFor({ state: "hidden" });
  });

  it("closes if nobody waits any more", async () => {
    const { window, world } = fixture();
    const tail = "home/third/list.txt";
    const file = path.join(world.root, tail);
    await window.type(`clear; cat ${file} &`);
    await window.answer(new RegExp(`"cat" wants to read ".*${tail}"`), "Answer…");
    const choices = window.page.locator(".quick-input-list .monaco-list-row", { hasText: "Until the session ends" });
    await choices.waitFor();
    await window.type("kill %1");
    await choices.waitFor({ state: "hidden" });
    await window.type(`clear; cat ${file}`);
    const question = await window.notification(new RegExp(`"cat" wants to read ".*${tail}"`));
    await window.focusTerminal();
    await window.page.keyboard.press("Control+C");
    // Until the shell reads, the interrupt drops what is typed.
    await until("a prompt", async () => (await window.terminal()).trimEnd().endsWith("ready$"));
    await window.run("echo interr''upted", /^interrupted$/m);
    await question.waitFor({ state: "hidden" });
    await window.page.locator(".statusbar-item", { hasText: "1 question" }).waitFor({ state: "hidden" });
    assert.doesNotMatch(await window.terminal(), /content-of-the-third/);
  });

  it("lets the session connect to a host", async function () {
    requireProtection(this, "network_hosts");
    const { window, world } = fixture();
    const server = createServer((socket) => socket.end("hello from outside\n"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      // The name under which a session reaches this machine.
      const target = `host.sandbox.internal:${port}`;
      const question = new RegExp(`"bash" wants to connect to "host\\.[^"]*:${port}"`);
      const line = `bash -c 'cat </dev/tcp/host.sandbox.internal/${port}'; echo status=$?`;
      await window.type(`clear; ${line}`);
      await window.answer(question, "Answer…");
      await window.choose("Don't allow");
      await until("the denial", async () => /^status=1$/m.test(await window.terminal()));
      await window.notification(new RegExp(`The sandbox refused to let "bash" connect to "${target}"`));
      // A no counts for the session.
      await window.newTerminal();
      await window.type(`clear; ${line}`);
      await window.answer(question, "Answer…");
      await window.choose("For all my projects");
      await until("the text", async () => /^hello from outside\nstatus=0$/m.test(await window.terminal()));
      assert.ok(readFileSync(world.settingsFile, "utf8").includes(`"localhost:${port}"`));
    } finally {
      server.close();
    }
  });
});
