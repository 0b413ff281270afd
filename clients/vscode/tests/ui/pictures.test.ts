import * as assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import * as path from "node:path";

import { expectedBar, refusedChange } from "../harness/machine";
import { tearDown, setUp, type Fixture } from "../harness/fixture";
import { dark, looksToTry } from "../harness/looks";
import { until } from "../harness/until";

/**
 * The directory for the pictures. "make screenshots" keeps those of the README.
 */
const others = process.env["SHOTS"] ?? path.join(__dirname, "pictures");
const directory = process.env["PICTURES"] ?? others;

/**
 * Takes pictures, for "make screenshots" the README's in a dark and in a light
 * window. A feature that is gone fails its picture. In a smaller window everything
 * is to be seen, too.
 */
for (const look of looksToTry()) {
  const small = look.size.width < dark.size.width;
  describe(`pictures, ${look.name}`, () => {
    let fixture: Fixture | undefined;
    before(async () => {
      mkdirSync(directory, { recursive: true });
      mkdirSync(others, { recursive: true });
      fixture = await setUp({
        look,
        settings: {
          "window.commandCenter": false,
          "editor.minimap.enabled": false,
          "workbench.layoutControl.enabled": false,
        },
        prepare: (world) => {
          world.write(path.join(world.home, ".bashrc"), "PS1='project$ '\n");
          world.write(path.join(world.home, "notes", "list.txt"), "milk\n");
          world.write(
            path.join(world.project, "main.c"),
            '#include <stdio.h>\n\nint main(void)\n{\n  puts("hello");\n}\n',
          );
        },
      });
    });
    after(async () => {
      await tearDown(fixture);
    });
    const at = (): Fixture => {
      if (fixture === undefined) throw new Error("there is no fixture");
      return fixture;
    };
    const take = async (name: string, to = small ? others : directory) => {
      const { page } = at().window;
      await page.screenshot({
        path: path.join(to, `${name}-${look.name}.png`),
        animations: "disabled",
        caret: "hide",
      });
    };
    const prompt = /project\$ $/;

    it("of a denial in a terminal", async () => {
      const { window, world } = at();
      await window.newTerminal(prompt);
      await window.run("clear; gcc -o hello main.c && ./hello", /^hello$/m);
      const file = path.join(world.home, "notes", "list.txt");
      await window.run(`echo bread >>~/notes/list.txt`, refusedChange());
      await window.waitForStatus(expectedBar("1 of 1 terminal"));
      await until(
        "a notification of three lines",
        async () => {
          // It is laid out while it slides in, and shown for seconds only.
          const shown = await window.notification(`refused to let "bash" write "${file}"`);
          const message = shown.locator(".notification-list-item-message");
          const box = await message.boundingBox({ timeout: 5000 });
          if (box === null || box.height > 3 * 22)
            throw new Error(`${JSON.stringify(box)} for ${String(await message.textContent({ timeout: 5000 }))}`);
          return true;
        },
        120,
      );
      await take("terminal");
      await window.command("Notifications: Clear All Notifications");
    });

    it("of the status", async () => {
      const { window } = at();
      await window.status.hover();
      await window.page.locator(".monaco-hover:visible", { hasText: "All Commands" }).waitFor();
      const box = await window.page.locator(".monaco-hover:visible").boundingBox();
      assert.ok(box !== null && box.height < 160 && box.y >= 0, "the hover is too high");
      await take("status");
      await window.page.mouse.move(640, 200);
      await until("the hover has gone", async () => (await window.page.locator(".monaco-hover:visible").count()) === 0);
    });

    it("of the policy", async () => {
      const { window, world } = at();
      world.write(world.settingsFile, '{ "terminal": { "sandbox": { "enabled": true, "toolchains": ["go"] } } }\n');
      await window.notification("still uses the old ones");
      await window.command("Notifications: Clear All Notifications");
      await window.page.keyboard.press("Control+J"); // closes the panel
      await window.page.keyboard.press("Control+B"); // closes the side bar
      await window.command("Sandbox: Show Policy");
      await window.choose("Terminals");
      await until("the policy", async () => (await window.editorText()).includes("FILES"));
      await window.wholeLines();
      await take("policy");
      await window.page.keyboard.press("Control+B");
      await window.page.locator(".explorer-viewlet").waitFor(); // beside it, the page is narrower
      await take("policy-beside", others);
    });

    it("of the doctor", async () => {
      const { window } = at();
      await window.command("Sandbox: Doctor");
      await until("what holds", async () => /This machine/.test(await window.editorText()));
      await window.wholeLines();
      await take("doctor", others);
    });

    it("of problems in settings", async () => {
      const { window, world } = at();
      const block = { enabled: true, toolchains: ["go", "nodejs"], allow_netwrk: false };
      world.write(world.settingsFile, `${JSON.stringify({ terminal: { sandbox: block } }, undefined, 2)}\n`);
      await window.command("Sandbox: Open User Settings");
      await until("the file", async () => (await window.editorText()).includes("allow_netwrk"));
      await window.page.locator(".squiggly-warning, .squiggly-error").first().waitFor();
      await window.command("View: Focus Problems");
      await window.page.locator(".markers-panel", { hasText: "unknown setting" }).waitFor();
      await window.command("Notifications: Clear All Notifications");
      await take("settings");
    });
  });
}
