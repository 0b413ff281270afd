import * as assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import * as path from "node:path";

import * as vscode from "vscode";

import { until } from "../harness/until";
import { extension, folder, runTool, settingsFile, withSettings } from "./setting";

describe("settings", () => {
  before(async () => {
    await extension();
    await runTool({ command: "true" }); // the sidecar runs
  });

  it("show their problems in the Problems view", async () => {
    const uri = vscode.Uri.file(settingsFile);
    await withSettings({ enabeld: true }, async () => {
      const found = await until("a diagnostic", () =>
        vscode.languages.getDiagnostics(uri).find(({ source }) => source === "sandbox-sidecar"),
      );
      assert.match(found.message, /did you mean "enabled"/);
      const document = await vscode.workspace.openTextDocument(uri);
      assert.match(document.getText(found.range), /enabeld/);
      const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
        "vscode.executeCodeActionProvider",
        uri,
        found.range,
      );
      const fix = actions.find(({ title }) => title === 'Change to "enabled"');
      assert.deepEqual(
        fix?.edit?.get(uri).map(({ newText }) => newText),
        ['"enabled"'],
      );
    });
    await until("no diagnostic", () =>
      vscode.languages.getDiagnostics(uri).every(({ source }) => source !== "sandbox-sidecar"),
    );
  });

  it("are completed from their schema", async () => {
    const file = path.join(folder(1), ".zed", "settings.json");
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, '{\n  "terminal": {\n    "sandbox": {\n      \n    }\n  }\n}\n');
    try {
      const document = await vscode.workspace.openTextDocument(file);
      await vscode.window.showTextDocument(document);
      assert.equal(document.languageId, "jsonc");
      const list = await until("completions", async () => {
        const position = new vscode.Position(3, 6);
        const found = await vscode.commands.executeCommand<vscode.CompletionList>(
          "vscode.executeCompletionItemProvider",
          document.uri,
          position,
        );
        return found.items.some(({ label }) => (typeof label === "string" ? label : label.label) === "allow_network")
          ? found
          : undefined;
      });
      assert.ok(list.items.length > 5);
    } finally {
      rmSync(path.dirname(file), { recursive: true });
    }
  });

  it("of a project cannot loosen the user's", async () => {
    const secret = path.join(process.env["HOME"] ?? "", ".ssh");
    const file = path.join(folder(0), ".zed", "settings.json");
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(
      file,
      JSON.stringify({ terminal: { sandbox: { enabled: false, additional_read_only_paths: [secret] } } }),
    );
    try {
      await until("the diagnostic", () => vscode.languages.getDiagnostics(vscode.Uri.file(file)).length > 0);
      assert.match(await runTool({ command: `cat ${secret}/id_test` }), /Permission denied/);
    } finally {
      rmSync(path.dirname(file), { recursive: true });
    }
  });
});
