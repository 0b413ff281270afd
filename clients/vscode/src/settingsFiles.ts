import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

import * as vscode from "vscode";

import { configuration } from "./configuration";

/** Returns the path of the user's settings file. */
export function userSettings(): string {
  const { settingsPath } = configuration();
  if (settingsPath !== "") return settingsPath;
  const base = process.env["XDG_CONFIG_HOME"];
  const config = base === undefined || base === "" ? path.join(homedir(), ".config") : base;
  return path.join(config, "sandbox-sidecar", "settings.json");
}

/** Returns the path of a project's settings file. */
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

/**
 * Opens a settings file. If there is none, opens an unsaved one with the basic
 * settings.
 */
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
