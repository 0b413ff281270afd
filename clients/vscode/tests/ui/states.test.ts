import * as assert from "node:assert/strict";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";
import { looksToTry } from "../harness/looks";
import { refusedChange } from "../harness/machine";
import { Screen } from "../harness/screen";
import { until } from "../harness/until";

for (const look of looksToTry()) {
  describe(`states, ${look.name}`, () => {
    const fixture = useFixture({
      look,
      prepare: (world) => {
        world.settings({ enabled: true, on_denied: "ask" });
        world.write(path.join(world.home, "notes", "list.txt"), "milk\n");
      },
    });
    let screen: Screen;
    before(() => (screen = new Screen(fixture().window, `state-${look.name}`)));
    const list = ".quick-input-list .monaco-list-row";
    const row = (text: string) => fixture().window.page.locator(list, { hasText: text }).first();
    const dialog = () => fixture().window.page.locator(".monaco-dialog-box");
    const escape = async () => fixture().window.page.keyboard.press("Escape");

    it("a question", async () => {
      const { window, world } = fixture();
      await window.newTerminal();
      await window.type(`clear; cat ${world.home}/notes/list.txt; echo status=$?`);
      await window.notification(/"cat" wants to read/);
      const bar = window.page.locator(".statusbar-item", { hasText: "1 question" });
      await bar.waitFor();
      await screen.take("question");
      await bar.click();
      await row("Until the session ends").waitFor();
      await screen.take("answers");
      await window.choose("Don't allow");
      await until("the denial", async () => /^status=1$/m.test(await window.terminal()));
      await screen.clear();
    });

    it("the view of what was refused", async () => {
      const { window, world } = fixture();
      world.settings({ enabled: true });
      await window.notification("still uses the old ones");
      await window.command("Terminal: Kill All Terminals");
      await window.newTerminal();
      await window.run(`clear; echo x >>${world.home}/notes/list.txt`, refusedChange());
      await window.run(`cat ${world.secret}; echo status=$?`, /^status=1$/m);
      const deep = path.join(world.home, "notes", "of-the-last-ten-years", "and-before", "a-rather-long-name.txt");
      world.write(deep, "milk\n");
      await window.run(`clear; cat ${deep}; cat ${deep}; echo again=$?`, /^again=1$/m);
      await screen.clear();
      await (await window.refused(/id_test/)).first().waitFor();
      // The end of a long path stays.
      await (await window.refused(/^cat: read …\/a.*…\w*\.txt/)).first().waitFor();
      await screen.take("refused");
      await window.command("View: Toggle Primary Side Bar Visibility");
    });

    it("files to check", async () => {
      const { window } = fixture();
      await window.type("clear; echo all: >Makefile; exit");
      await window.notification('Check "Makefile"');
      await screen.take("check");
      await window.answer('Check "Makefile"', "Show…");
      await row("Makefile").waitFor();
      await screen.take("files to check");
      await escape();
    });

    it("a project that asks for more", async () => {
      const { window, world } = fixture();
      const block = { allow_network: true, additional_read_write_paths: ["~/notes", "~/other"], allowed_env_vars: ["TOKEN"] };
      world.write(path.join(world.project, ".zed", "settings.json"), JSON.stringify({ terminal: { sandbox: block } }));
      const told = await window.notification("asks for more");
      await screen.take("project asks");
      await told.getByText("Show…").click();
      await dialog().waitFor();
      await screen.take("trust");
      await dialog().getByText("Don't Trust").click();
    });

    it("the choice of a mode, and all commands", async () => {
      const { window } = fixture();
      await window.command("Sandbox: Choose Mode…");
      await row("strict").waitFor();
      await screen.take("modes");
      await escape();
      await window.status.click();
      await row("Turn Off…").waitFor();
      assert.equal(await row("Turn On…").count(), 0);
      assert.equal(await row("Undo").count(), 0);
      await screen.take("commands");
      await escape();
    });

    it("the explanation of an access", async () => {
      const { window } = fixture();
      await window.command("Sandbox: Explain Access…");
      await row("Terminals").waitFor();
      await window.choose("Terminals");
      await row("Read a file").waitFor();
      await screen.take("accesses");
      await window.choose("Read a file");
      await window.page.locator(".quick-input-widget:visible input.input").fill("~/notes/list.txt");
      await row("~/notes/list.txt").waitFor();
      await screen.take("path");
      await window.page.keyboard.press("Enter");
      await dialog().waitFor();
      await screen.take("explanation");
      await escape();
    });

    it("the doctor", async () => {
      const { window } = fixture();
      await window.command("Sandbox: Doctor");
      await until("the report", async () => (await window.editorText()).includes("filesystem"));
      await screen.take("doctor");
      await window.command("View: Close All Editors");
    });

    it("what confining everything changes", async () => {
      const { window } = fixture();
      await window.command("Sandbox: Confine All Terminals, Tasks and Agents…");
      await dialog().waitFor();
      await screen.take("confine, asked first");
      await escape();
    });

    it("the walkthrough", async () => {
      const { window } = fixture();
      await window.command("Welcome: Open Walkthrough...");
      await window.choose("Sandboxed terminals and tools");
      await window.page.locator(".getting-started-step", { hasText: "Turn the sandbox on" }).first().waitFor();
      await screen.take("walkthrough");
      await window.command("View: Close All Editors");
    });

    it("a program that is missing", async () => {
      const { window, world } = fixture();
      world.machineSettings({ "sandboxSidecar.path": "/nonexistent/sandbox-sidecar" });
      await window.notification("apply after a restart");
      await screen.take("restart needed");
      const told = await window.notification("apply after a restart");
      await told.getByRole("button", { name: "Restart" }).click();
      await window.waitForStatus("Sandbox: error");
      await window.notification("sandbox-sidecar");
      await screen.take("missing");
    });
  });
}
