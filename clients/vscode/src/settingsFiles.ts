import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

import * as vscode from "vscode";

import { configuration } from "./configuration";
import { quote } from "./display";

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

/**
 * Changes a settings file, or makes one. Throws if the editor has unsaved
 * changes of it, which would be lost.
 */
export async function editSettings(file: string, edit: (text: string) => string): Promise<void> {
  const uri = vscode.Uri.file(file);
  if (vscode.workspace.textDocuments.some((document) => document.uri.fsPath === file && document.isDirty))
    throw new Error(
      vscode.l10n.t("Nothing was written: {0} has unsaved changes. Save it and try again.", quote(file, 40)),
    );
  let before = "";
  try {
    before = await readFile(file, "utf8");
  } catch (error) {
    // What is in a file that cannot be read would be lost.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(edit(before)));
}

/** The platform whose block of a settings file counts here. */
export function platformBlock(): "linux" | "macos" {
  return process.platform === "darwin" ? "macos" : "linux";
}
