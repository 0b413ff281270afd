import * as assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import * as path from "node:path";

import { statusList, type Facts } from "../../src/statusList";

const root = path.join(__dirname, "..", "..");
const off: Facts = {
  on: { terminal: false, tool: false },
  openInFront: false,
  running: true,
  confined: false,
  isDefault: false,
  denials: 0,
  files: 0,
  folder: true,
  trusted: true,
};
const commands = (facts: Facts) => statusList(facts).flatMap(([, all]) => all);
/** What two states do not have in common. */
const differences = (facts: Partial<Facts>) => {
  const [before, after] = [commands(off), commands({ ...off, ...facts })];
  return [before.filter((one) => !after.includes(one)), after.filter((one) => !before.includes(one))];
};

describe("the list of the status bar", () => {
  it("has only what applies", () => {
    assert.deepEqual(differences({ on: { terminal: true, tool: true } }), [["turnOn"], ["chooseMode", "turnOff"]]);
    assert.deepEqual(differences({ on: { terminal: true, tool: false } }), [[], ["chooseMode", "turnOff"]]);
    assert.deepEqual(differences({ on: undefined }), [[], ["chooseMode", "turnOff"]]);
    assert.deepEqual(differences({ confined: true }), [["confineAll"], ["unconfineAll"]]);
    assert.deepEqual(differences({ isDefault: true }), [["makeDefault"], ["undoDefault"]]);
    assert.deepEqual(differences({ denials: 1, files: 1 }), [[], ["showDenials", "showReview"]]);
    assert.deepEqual(differences({ openInFront: true }), [[], ["replaceTerminal"]]);
    assert.deepEqual(differences({ trusted: false }), [["trustProject"], []]);
    assert.deepEqual(differences({ running: false }), [["openPort", "endBackground"], []]);
    assert.deepEqual(differences({ folder: false }), [["showPolicy", "explain", "openProjectSettings", "trustProject"], []]);
  });

  it("is short, and has each command once", () => {
    for (const on of [off.on, { terminal: true, tool: true }]) {
      const all = commands({ ...off, on });
      assert.ok(all.length <= 16, `${all.length} commands`);
      assert.equal(new Set(all).size, all.length);
    }
  });
});

describe("an icon", () => {
  it("is one that VS Code has", () => {
    const dir = process.env["VSCODE_DIR"] ?? "";
    const workbench = "server/node_modules/code-server/lib/vscode/out/vs/code/browser/workbench/workbench.js";
    const known = new Set(
      [...readFileSync(path.join(dir, workbench), "utf8").matchAll(/\("([a-z][a-z0-9-]*)",(?:6\d{4}|"[a-z-]+")\)/g)].map(
        ([, name]) => name,
      ),
    );
    assert.ok(known.has("shield") && !known.has("power"), `${known.size} icons`);
    const files = [
      "package.json",
      ...readdirSync(path.join(root, "src"))
        .filter((name) => name.endsWith(".ts"))
        .map((name) => `src/${name}`),
    ];
    const used = files.flatMap((file) =>
      [...readFileSync(path.join(root, file), "utf8").matchAll(/\$\(([a-z][a-z-]*)\)|ThemeIcon\("([a-z-]+)"|, icon: "([a-z-]+)"/g)].map(
        ([, a, b, c]) => ({ file, name: a ?? b ?? c ?? "" }),
      ),
    );
    assert.ok(used.length > 25, `${used.length} icons are used`);
    assert.deepEqual(
      used.filter(({ name }) => !known.has(name)),
      [],
    );
  });
});
