import * as assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";
import { looksToTry } from "../harness/looks";
import { expectedBar, refusedChange } from "../harness/machine";
import { matching } from "../harness/processes";
import { Screen } from "../harness/screen";
import { until } from "../harness/until";

const sandboxed = /This terminal is (partly )?sandboxed\..* Sandboxed terminals in this window: 1 of 1\./;
/** The name of a sandboxed terminal: its shield says the rest. */
const shell = /^\s*bash\s*$/;
const old = /This terminal is (partly )?sandboxed\..*It uses old settings\./;

for (const look of looksToTry()) {
  describe(`a first hour, ${look.name}`, () => {
    const fixture = useFixture({
      look,
      prepare: (world) => {
        rmSync(world.settingsFile);
        world.write(path.join(world.home, "notes", "list.txt"), "milk\n");
      },
    });

    it("says what is so: off, on, refused, allowed, changed, reopened, killed, restarted", async () => {
      const { window, world } = fixture();
      const screen = new Screen(window, `story-${look.name}`);
      const one = expectedBar("1 of 1 terminal");
      const list = path.join(world.home, "notes", "list.txt");
      const prompt = () =>
        until("a prompt", async () => {
          const text = (await window.terminal()).trimEnd();
          if (!text.endsWith("ready$")) throw new Error(JSON.stringify(text.slice(-2000)));
          return true;
        });
      // A choice among several terminals has them all selected.
      const reopen = async (notice: string) => {
        await window.answer(notice, "Reopen…");
        await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "bash" }).first().waitFor();
        await screen.take("which terminals are reopened");
        await window.page.keyboard.press("Enter");
        // Until the old terminal is gone, what is typed may go to that.
        await window.page.locator(".single-terminal-tab", { hasText: shell }).waitFor();
        await screen.clear();
      };

      // Off: the first terminal asks, and says that nothing confines it.
      await window.command("Sandbox: New Terminal");
      const dialog = window.page.locator(".monaco-dialog-box", { hasText: "Terminals are not sandboxed" });
      await dialog.waitFor();
      await screen.take("off and the first terminal asks");
      await dialog.getByText("Open Unsandboxed").click();
      await prompt();
      await window.run(`cat ${world.secret}`, new RegExp(`^${world.secretText}$`, "m"));
      await screen.shows("off", {
        bar: "Sandbox: 0 of 1 terminal, not this one",
        hover: /This terminal is not sandboxed\. Sandboxed terminals in this window: 0 of 1\. New terminals and tools in "project" are not sandboxed\./,
        terminal: "bash (not sandboxed)",
      });

      // On: what is open stays as it is, and says so.
      await window.command("Sandbox: Turn On…");
      await window.notification("Turn the sandbox on for:");
      await screen.take("for what it is turned on");
      await window.answer("Turn the sandbox on for:", "Terminals and Tools");
      await screen.shows("on", {
        bar: "Sandbox: 0 of 1 terminal, not this one",
        hover: /This terminal is not sandboxed\..* New terminals and tools in "project" are sandboxed\./,
        terminal: "bash (not sandboxed)",
        notice: "The sandbox is on. It applies to new terminals and tools.",
      });
      await reopen("The sandbox is on.");
      await screen.shows("sandboxed", { bar: one, hover: sandboxed, terminal: shell });
      await prompt();
      await window.run(`cat ${world.secret}; echo status=$?`, /^status=1$/m);
      await window.notification("The sandbox refused");
      await screen.clear();

      // A refusal, and what allows it.
      await window.run(`clear; echo bread >>${list}`, refusedChange());
      await screen.shows("refused", {
        bar: one,
        hover: sandboxed,
        terminal: shell,
        notice: /The sandbox refused to let "bash" write ".*notes\/list\.txt"/,
      });
      await window.answer("The sandbox refused", "Allow…");
      await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "For this project" }).first().waitFor();
      await screen.take("where it is allowed");
      await window.choose("For all my projects");
      await screen.shows("allowed", {
        bar: one,
        hover: old,
        terminal: "⚠ bash (old settings)",
        notice: 'The setting was written to "~/.config/sandbox-sidecar/settings.json". It applies to new terminals.',
      });
      assert.match(readFileSync(world.settingsFile, "utf8"), /"additional_read_write_paths": \[[^\]]*notes/);
      await reopen("It applies to new terminals.");
      await prompt();
      await window.run("clear; echo bread >>~/notes/list.txt; echo status=$?", /^status=0$/m);
      assert.equal(readFileSync(list, "utf8"), "milk\nbread\n");
      await screen.shows("works", { bar: one, hover: sandboxed, terminal: shell });

      // Another program changes the settings.
      const text = readFileSync(world.settingsFile, "utf8");
      writeFileSync(world.settingsFile, text.replace(/"additional_read_write_paths"/, '"allow_network": false, $&'));
      await screen.shows("changed", {
        bar: one,
        hover: old,
        terminal: "⚠ bash (old settings)",
        notice: "The sandbox settings changed. One running terminal still uses the old ones.",
      });
      await reopen("still uses the old ones");
      await prompt();
      await window.command("Sandbox: Reopen Terminals with Old Settings…");
      await screen.shows("reopened", {
        bar: one,
        hover: sandboxed,
        terminal: shell,
        notice: "Every sandboxed terminal uses the current settings.",
      });
      await screen.clear();

      // The sidecar's end is its sessions' end.
      const sidecar = matching("serve --log-level").find(({ command }) => command.startsWith(world.root));
      assert.ok(sidecar);
      process.kill(sidecar.pid, "SIGKILL");
      await until("the terminal says so", async () =>
        (await window.terminal()).includes("The sandbox sidecar ended, and this session with it."),
      );
      await screen.shows("killed", {
        bar: /Sandbox: (on|partly)\s*$/,
        hover: /^New terminals and tools in "project" are sandboxed\./,
        terminal: "bash (ended)",
        notice: "The sandbox sidecar ended unexpectedly, and one session with it. It is restarting.",
      });
      await screen.clear();
      await window.focusTerminal();
      await window.page.keyboard.press("Enter");
      await until("no terminal", async () => (await window.tabs()) === 0);
      await window.newTerminal();
      await window.run("clear; echo rye >>~/notes/list.txt; echo status=$?", /^status=0$/m);
      await window.run(`cat ${world.secret}; echo secret=$?`, /^secret=1$/m);
      await screen.shows("restarted", { bar: one, hover: sandboxed, terminal: shell });
    });
  });
}
