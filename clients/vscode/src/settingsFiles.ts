import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

import * as vscode from "vscode";

import { configuration } from "./configuration";

/** Answers the user's own settings file. */
export function userSettings(): string {
  const { settingsPath } = configuration();
  if (settingsPath !== "") return settingsPath;
  const base = process.env["XDG_CONFIG_HOME"];
  const config = base === undefined || base === "" ? path.join(homedir(), ".config") : base;
  return path.join(config, "sandbox-sidecar", "settings.json");
}

/** Answers the settings file of a project. */
export function projectSettings(folder: string): string {
  return path.join(folder, ".zed", "settings.json");
}

const skeleton = `{
  "terminal": {
    "sandbox": {
      "enabled": true
    }
  }
}
`;

/** Opens a settings file; where there is none, a new one that counts when it is saved. */
export async function openSettings(file: string): Promise<vscode.TextEditor> {
  const uri = vscode.Uri.file(file);
  const exists = await stat(file).then(
    () => true,
    () => false,
  );
  if (exists) return vscode.window.showTextDocument(uri);
  const document = await vscode.workspace.openTextDocument(uri.with({ scheme: "untitled" }));
  const editor = await vscode.window.showTextDocument(document);
  if (document.getText() === "") {
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), skeleton));
    await vscode.languages.setTextDocumentLanguage(document, "jsonc");
  }
  return editor;
}
