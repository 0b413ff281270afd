import * as vscode from "vscode";

import type { Counter } from "./count";
import { text } from "./display";
import { currentFolder, pickFolder, placeOf } from "./folders";
import { inform } from "./notices";
import type { Stale } from "./stale";
import type { Terminals } from "./terminals";

/**
 * Opens a sandboxed terminal in the place of the one in front, in the same
 * directory if that is in a folder.
 */
export async function replaceTerminal(terminals: Terminals, counter: Counter, stale: Stale): Promise<void> {
  const front = vscode.window.activeTerminal;
  if (front === undefined || counter.count.active === "confined") {
    void inform(vscode.l10n.t("The terminal in front is sandboxed, or there is none."));
    return;
  }
  const folder = currentFolder() ?? (await pickFolder());
  if (folder === undefined) return;
  const replace = vscode.l10n.t("Replace");
  const question = vscode.l10n.t("Replace {0} with a sandboxed terminal?", text(front.name));
  const detail = vscode.l10n.t("Programs in it are ended.");
  if ((await vscode.window.showWarningMessage(question, { modal: true, detail }, replace)) !== replace) return;
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  const place = await placeOf(front.shellIntegration?.cwd?.fsPath, folders).catch(() => undefined);
  const projectDir = place?.folder ?? folder.uri.fsPath;
  if (!(await stale.opens(projectDir))) return;
  await terminals.show(place?.cwd ?? projectDir, projectDir);
  front.dispose();
}
