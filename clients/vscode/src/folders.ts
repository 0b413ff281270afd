import { realpath } from "node:fs/promises";
import * as path from "node:path";

import * as vscode from "vscode";

import { quote } from "./display";
import { warn } from "./notices";

/**
 * Returns the folder of the active editor, else the first one; undefined if
 * none is open.
 */
export function currentFolder(): vscode.WorkspaceFolder | undefined {
  const document = vscode.window.activeTextEditor?.document;
  const active = document === undefined ? undefined : vscode.workspace.getWorkspaceFolder(document.uri);
  return active ?? vscode.workspace.workspaceFolders?.[0];
}

/** What knows the project of a terminal. */
interface Projects {
  projectOf(terminal: vscode.Terminal): Promise<string | undefined>;
}

/**
 * Returns the folder of the terminal in front; without one that is known, the
 * current folder.
 */
export async function folderInFront(...known: Projects[]): Promise<vscode.WorkspaceFolder | undefined> {
  const terminal = vscode.window.activeTerminal;
  if (terminal === undefined) return currentFolder();
  const projects = await Promise.all(known.map((one) => one.projectOf(terminal).catch(() => undefined)));
  const cwd = terminal.shellIntegration?.cwd;
  const uris = projects.flatMap((project) => (project === undefined ? [] : [vscode.Uri.file(project)]));
  for (const uri of cwd === undefined ? uris : [...uris, cwd]) {
    const folder = vscode.workspace.getWorkspaceFolder(uri);
    if (folder !== undefined) return folder;
  }
  return currentFolder();
}

/**
 * Returns the folder for a command; asks if there are several. Returns
 * undefined if the user cancelled or no folder is open.
 */
export async function pickFolder(): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  if (folders.length === 1) return folders[0];
  if (folders.length > 1) {
    return vscode.window.showWorkspaceFolderPick({ placeHolder: vscode.l10n.t("Select a folder") });
  }
  const open = vscode.l10n.t("Open Folder");
  // A session may write its project. Without a folder, that would be the home
  // directory.
  const message = vscode.l10n.t(
    "No folder is open. A sandboxed session writes only its project, so open a folder first.",
  );
  if ((await warn(message, open)) === open) {
    await vscode.commands.executeCommand("vscode.openFolder");
  }
  return undefined;
}

/**
 * Resolves the directory of a tool's command: cwd without symlinks, and the
 * folder that contains it. Throws if no folder contains it. A session may write
 * its project, and the project would be that directory.
 */
export async function placeOf(
  cwd: string | undefined,
  folders: readonly string[],
): Promise<{ cwd: string; folder: string }> {
  const first = folders[0];
  if (first === undefined) throw new Error("no folder is open, so the command has no project to run in");
  const wanted = path.resolve(first, cwd ?? ".");
  let real: string;
  try {
    real = await realpath(wanted);
  } catch {
    throw new Error(`cwd: ${quote(wanted)}: no such directory`);
  }
  let best: string | undefined;
  for (const folder of folders) {
    const realFolder = await realpath(folder).catch(() => folder);
    const inside = real === realFolder || real.startsWith(realFolder.endsWith("/") ? realFolder : `${realFolder}/`);
    if (inside && (best === undefined || folder.length > best.length)) best = folder;
  }
  if (best === undefined) throw new Error(`cwd: ${quote(wanted)} is outside of the open folders`);
  return { cwd: real, folder: best };
}
