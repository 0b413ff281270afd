import * as vscode from "vscode";

import type { Counter } from "./count";
import { text } from "./display";
import { pickFolder, placeOf } from "./folders";
import { inform } from "./notices";
import type { Stale } from "./stale";
import type { Terminals } from "./terminals";

/**
 * Opens a sandboxed terminal in the place of the one in front, in the same
 * directory if that is in the project.
 */
export async function replaceTerminal(terminals: Terminals, counter: Counter, stale: Stale): Promise<void> {
  const front = vscode.window.activeTerminal;
  const sandboxed = counter.count.active === "confined" || terminals.of(front)?.spawned?.sandbox.applied === true;
  if (front === undefined || sandboxed) {
    void inform(vscode.l10n.t("The terminal in front is sandboxed, or there is none."));
    return;
  }
  const projectDir = (await terminals.projectOf(front)) ?? (await pickFolder())?.uri.fsPath;
  if (projectDir === undefined) return;
  const replace = vscode.l10n.t("Replace");
  const question = vscode.l10n.t("Replace {0} with a sandboxed terminal?", text(front.name));
  const detail = vscode.l10n.t("Programs in it are ended.");
  if ((await vscode.window.showWarningMessage(question, { modal: true, detail }, replace)) !== replace) return;
  // What runs there says where it is, and must not lead to another project.
  const place = await placeOf(front.shellIntegration?.cwd?.fsPath, [projectDir]).catch(() => undefined);
  if (!(await stale.opens(projectDir))) return;
  await terminals.show(place?.cwd ?? projectDir, projectDir);
  front.dispose();
}
