import * as assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import * as path from "node:path";

interface MenuItem {
  command: string;
  when?: string;
  group?: string;
}

interface Manifest {
  contributes: {
    commands: { command: string }[];
    menus: Record<string, MenuItem[]>;
    views: Record<string, { id: string; type?: string; accessibilityHelpContent?: string }[]>;
    [point: string]: unknown;
  };
}

const root = path.join(__dirname, "..", "..");
const { contributes } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as Manifest;
const sources = readdirSync(path.join(root, "src"))
  .filter((name) => name.endsWith(".ts"))
  .map((name) => ({ name, text: readFileSync(path.join(root, "src", name), "utf8") }));

/** Whatever draws its own page. VS Code makes nothing in it accessible. */
const webview = /\b(create|register)Webview\w*|registerCustomEditorProvider|createNotebook\w*/;
const pages = ["customEditors", "notebookRenderer", "notebooks"];

describe("accessibility", () => {
  // A webview needs a check by axe in a real window, in each look.
  it("is VS Code's own, as there is no webview", () => {
    for (const sample of ["vscode.window.createWebviewPanel(", "window.registerWebviewViewProvider("])
      assert.match(sample, webview);
    for (const { name, text } of sources) assert.doesNotMatch(text, webview, `${name} has a webview, but no check`);
    for (const point of pages) assert.equal(contributes[point], undefined, point);
    for (const view of Object.values(contributes.views).flat()) assert.notEqual(view.type, "webview", view.id);
  });

  it("includes the palette: it has every command", () => {
    const hidden = (contributes.menus["commandPalette"] ?? []).filter(({ when }) => when === "false");
    assert.deepEqual(
      hidden.map(({ command }) => command),
      [],
    );
    const all = sources.map(({ text }) => text).join("\n");
    for (const { command } of contributes.commands)
      assert.ok(all.includes(`register("${command.replace("sandboxSidecar.", "")}"`), `${command} does nothing`);
  });

  // The keyboard opens a row's menu, but reaches no button in it.
  it("includes the keyboard: each button of a row is in its menu, too", () => {
    const items = contributes.menus["view/item/context"] ?? [];
    const buttons = items.filter(({ group }) => group?.startsWith("inline") === true);
    assert.ok(buttons.length > 0);
    for (const { command, when } of buttons)
      assert.ok(
        items.some((item) => item.command === command && item.when === when && item.group?.startsWith("inline") !== true),
        `${command} is only a button`,
      );
  });

  // VS Code shows the key of its own split beside that, whatever is in front.
  it("is not confused by two entries of a menu with one key", () => {
    const keys = contributes["keybindings"] as { command: string; key: string }[];
    assert.ok(keys.some(({ key }) => key === "ctrl+shift+5"));
    for (const menu of ["terminal/context", "terminal/title/context"]) {
      const items = contributes.menus[menu] ?? [];
      assert.ok(items.length > 0, menu);
      for (const { command } of items) assert.ok(keys.every((key) => key.command !== command), `${menu}: ${command}`);
    }
    const all = sources.map(({ text }) => text).join("\n");
    for (const { command } of keys) assert.ok(all.includes(`registerCommand("${command}"`), `${command} does nothing`);
  });

  it("includes help for each view", () => {
    for (const { id, accessibilityHelpContent } of Object.values(contributes.views).flat())
      assert.ok(accessibilityHelpContent !== undefined, id);
  });
});
