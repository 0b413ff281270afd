import * as assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import * as path from "node:path";

import * as ts from "typescript";

const root = path.join(__dirname, "..", "..");
const read = (name: string) => readFileSync(path.join(root, name), "utf8");

/** Returns the first argument of every call of vscode.l10n.t. */
function strings(): string[] {
  const found = new Set<string>();
  for (const name of readdirSync(path.join(root, "src")).filter((file) => file.endsWith(".ts"))) {
    const source = ts.createSourceFile(name, read(path.join("src", name)), ts.ScriptTarget.ES2022, true);
    const visit = (node: ts.Node): void => {
      if (ts.isCallExpression(node) && node.expression.getText(source) === "vscode.l10n.t") {
        const [text] = node.arguments;
        assert.ok(
          text !== undefined && ts.isStringLiteral(text),
          `${name}: a text that translators cannot see: ${node.getText(source)}`,
        );
        found.add(text.text);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  return [...found].sort();
}

describe("texts", () => {
  it("are all in the bundle for translators (UPDATE=1 writes it)", () => {
    const want = `${JSON.stringify(Object.fromEntries(strings().map((text) => [text, text])), undefined, 2)}\n`;
    const file = "l10n/bundle.l10n.json";
    if (process.env["UPDATE"] === "1") writeFileSync(path.join(root, file), want);
    assert.equal(read(file), want, "run UPDATE=1 clients/vscode/tests/run -g texts");
  });

  for (const language of ["de", "ja"]) {
    it(`are all translated: ${language}`, () => {
      for (const [english, translated] of [
        ["l10n/bundle.l10n.json", `l10n/bundle.l10n.${language}.json`],
        ["package.nls.json", `package.nls.${language}.json`],
      ] as const) {
        const from = JSON.parse(read(english)) as Record<string, string>;
        const to = JSON.parse(read(translated)) as Record<string, string>;
        assert.deepEqual(Object.keys(to), Object.keys(from), `${translated} has other texts, or in another order`);
        // What is replaced, drawn as an icon or bold, or run, is the same.
        const marks = (text: string): string[] => (text.match(/\{\d\}|\$\(\w+\)|\*\*|`[^`]+`|command:\w+\.\w+|…$/g) ?? []).sort();
        let same = 0;
        for (const [key, text] of Object.entries(from)) {
          const other: string = to[key] ?? "";
          assert.deepEqual(marks(other), marks(text), `${translated}: ${text}`);
          assert.ok(other.trim() !== "", `${translated}: ${text}`);
          if (english.startsWith("l10n") && text.length <= 100) assert.ok(other.length <= 100, `${translated}: too long: ${other}`);
          if (other === text) same += 1;
        }
        // Some words are the same in German.
        assert.ok(same < 8, `${same} texts of ${translated} are as they were`);
      }
    });
  }

  it("of package.json are complete and used", () => {
    const used = new Set([...read("package.json").matchAll(/"%([\w.]+)%"/g)].map((match) => match[1]));
    const given = new Set(Object.keys(JSON.parse(read("package.nls.json")) as object));
    assert.deepEqual(
      [...used].filter((key) => key !== undefined && !given.has(key)),
      [],
    );
    assert.deepEqual(
      [...given].filter((key) => !used.has(key)),
      [],
    );
  });

  it("exist for every command", () => {
    const manifest = JSON.parse(read("package.json")) as { contributes: { commands: { command: string }[] } };
    const registered = new Set(
      [...read("src/extension.ts").matchAll(/register\("(\w+)"/g)].map((match) => `sandboxSidecar.${match[1] ?? ""}`),
    );
    assert.deepEqual(
      manifest.contributes.commands.map(({ command }) => command).filter((command) => !registered.has(command)),
      [],
    );
    assert.equal(registered.size, manifest.contributes.commands.length);
  });
});
