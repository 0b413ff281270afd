import { realpath } from "node:fs/promises";
import * as path from "node:path";

import * as vscode from "vscode";

import { quote } from "./display";

/** Answers the folder of the active editor, else the first one; undefined where none is open. */
export function currentFolder(): vscode.WorkspaceFolder | undefined {
  const document = vscode.window.activeTextEditor?.document;
  const active = document === undefined ? undefined : vscode.workspace.getWorkspaceFolder(document.uri);
  return active ?? vscode.workspace.workspaceFolders?.[0];
}

/** Answers the folder that a command is about, and asks where there is more than one. undefined: the user does not want to, or was told. */
export async function pickFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 1) return folders[0];
  if (folders.length > 1) {
    return vscode.window.showWorkspaceFolderPick({ placeHolder: vscode.l10n.t("Which folder is it about?") });
  }
  const open = vscode.l10n.t("Open Folder");
  // A session may write its project. Without a folder that would be the home
  // directory.
  const message = vscode.l10n.t("Open a folder first: a sandboxed session may write its project, and there is none.");
  if ((await vscode.window.showWarningMessage(message, open)) === open) {
    await vscode.commands.executeCommand("vscode.openFolder");
  }
  return undefined;
}

/**
 * Answers where a tool's command runs: cwd with its symlinks followed, and the
 * folder that holds it. Raises an error where it lies outside of every folder,
 * because the directory that a session works in becomes its project, which it
 * may write.
 */
export async function placeOf(
  cwd: string | undefined,
  folders: readonly string[],
): Promise<{ cwd: string; folder: string }> {
  const first = folders[0];
  if (first === undefined) throw new Error("no folder is open, so there is no project that the command could work in");
  const wanted = path.resolve(first, cwd ?? ".");
  let real: string;
  try {
    real = await realpath(wanted);
  } catch {
    throw new Error(`use directory: ${quote(wanted)}: no such directory`);
  }
  let best: string | undefined;
  for (const folder of folders) {
    const realFolder = await realpath(folder).catch(() => folder);
    const inside = real === realFolder || real.startsWith(realFolder.endsWith("/") ? realFolder : `${realFolder}/`);
    if (inside && (best === undefined || folder.length > best.length)) best = folder;
  }
  if (best === undefined) throw new Error(`use directory: ${quote(wanted)}: it is outside of the open folders`);
  return { cwd: real, folder: best };
}
