import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";
import { refusedChange, requireProtection } from "../harness/machine";
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

  it("is reported once, and listed with its count", async () => {
    const { window, world } = fixture();
    const file = path.join(world.home, "notes", "list.txt");
    await window.run(`clear; echo x >>${file}; echo x >>${file}; echo twi''ce`, /^twice$/m);
    const rows = window.page.locator(".quick-input-list .monaco-list-row", { hasText: `write "${file}"` });
    // A repeated denial is sent again after a second, with its count.
    await until("its number in the list", async () => {
      await window.command("Sandbox: Show Denials");
      await rows.first().waitFor();
      const all = await rows.allInnerTexts();
      await window.page.keyboard.press("Escape");
      assert.equal(all.length, 1, all.join("\n"));
      return /\(\d+ times\)/.test(all.join());
    });
    assert.equal(await (await window.listed(`write "${file}"`)).count(), 0);
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
      await window.run(`clear; echo x >>${path.join(world.home, "notes", "list.txt")}; echo sti''ll`, /^still$/m),
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
    await window.notification(`"${settings}" is trusted`);

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

  it("of credentials offers no setting, and says why", async () => {
    const { window, world } = fixture();
    for (const [line, what, done] of [
      [`cat ${world.secret}`, 'let "cat" read', "read"],
      [`echo x >>${world.secret}`, 'let "bash" write', "written"],
    ] as const) {
      await window.run(`clear; ${line}; echo secret-${done}=$?`, new RegExp(`^secret-${done}=1$`, "m"));
      const notification = await window.notification(`refused to ${what} "${world.secret}"`);
      assert.match(await notification.innerText(), /SSH keys/);
      for (const button of ["Allow…", "Copy Setting"])
        assert.equal(await notification.getByText(button).count(), 0, button);
      assert.equal(await notification.locator(".monaco-button").count(), 0);
    }
  });

  it("among a hundred is part of a summary", async () => {
    const { window, world } = fixture();
    const dir = path.join(world.home, "crowd");
    await window.command("Notifications: Clear All Notifications");
    await window.run(`clear; for i in $(seq 100); do echo x >>${dir}/$i; done 2>/dev/null; echo cro''wd`, /^crowd$/m);
    await window.notification(/The sandbox refused ([1-9]\d|1\d\d) operations\. The first: .*crowd/);
    const notification = await window.listed("The sandbox refused");
    await notification.first().waitFor();
    const all = await notification.allInnerTexts();
    assert.ok(all.length <= 4, all.join("\n"));
  });
});

describe("a question about an access", () => {
  const fixture = useFixture({
    prepare: (world) => {
      world.settings({ enabled: true, on_denied: "ask", allow_network: false });
      world.write(path.join(world.home, "notes", "list.txt"), "content-of-the-notes\n");
      world.write(path.join(world.home, "more", "list.txt"), "content-of-more\n");
      world.write(path.join(world.home, "third", "list.txt"), "content-of-the-third\n");
    },
  });

  it("refuses the access if the user denies it", async () => {
    const { window, world } = fixture();
    const file = path.join(world.home, "notes", "list.txt");
    await window.newTerminal();
    await window.type(`cat ${file}; echo status=$?`);
    await window.answer(`"cat" wants to read "${file}"`, "Deny");
    await until("the denial", async () => /^status=1$/m.test(await window.terminal()));
    assert.match(await window.terminal(), /Permission denied/);
  });

  it("allows the access at once, for the chosen time", async () => {
    const { window, world } = fixture();
    const file = path.join(world.home, "more", "list.txt");
    await window.type(`clear; cat ${file}`);
    await window.answer(`"cat" wants to read "${file}"`, "Allow…");
    await window.choose("Until the session ends");
    await until("the text", async () => (await window.terminal()).includes("content-of-more"));
    // The session is not asked again.
    await window.run(`clear; cat ${file}; echo aga''in`, /content-of-more\nagain$/m);
  });

  it("closes if nobody waits any more, and a late answer allows nothing", async () => {
    const { window, world } = fixture();
    const file = path.join(world.home, "third", "list.txt");
    await window.type(`clear; cat ${file} &`);
    await window.answer(`"cat" wants to read "${file}"`, "Allow…");
    const choices = window.page.locator(".quick-input-list .monaco-list-row", { hasText: "Until the session ends" });
    await choices.waitFor();
    await window.type("kill %1");
    await choices.waitFor({ state: "hidden" });
    await window.type(`clear; cat ${file}`);
    await window.notification(`"cat" wants to read "${file}"`);
    await window.focusTerminal();
    await window.page.keyboard.press("Control+C");
    await window.run("echo interr''upted", /^interrupted$/m);
    await window.answer(`"cat" wants to read "${file}"`, "Allow Once");
    await window.notification("Nothing was allowed: the program no longer waits");
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
      const line = `bash -c 'cat </dev/tcp/host.sandbox.internal/${port}'; echo status=$?`;
      await window.type(`clear; ${line}`);
      await window.answer(`"bash" wants to connect to "${target}"`, "Deny");
      await until("the denial", async () => /^status=1$/m.test(await window.terminal()));
      await window.notification(new RegExp(`The sandbox refused to let "bash" connect to "${target}"`));
      // A no counts for the session.
      await window.newTerminal();
      await window.type(`clear; ${line}`);
      await window.answer(`"bash" wants to connect to "${target}"`, "Allow…");
      await window.choose("For all my projects");
      await until("the text", async () => /^hello from outside\nstatus=0$/m.test(await window.terminal()));
      assert.ok(readFileSync(world.settingsFile, "utf8").includes(`"localhost:${port}"`));
    } finally {
      server.close();
    }
  });
});
