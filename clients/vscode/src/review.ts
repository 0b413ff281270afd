import * as path from "node:path";

import * as vscode from "vscode";

import { Batcher } from "./batcher";
import { quote, text } from "./display";
import { describe } from "./errors";
import type { Manager } from "./manager";
import { fail, inform, warn } from "./notices";
import type { Finding } from "./protocol.gen";
import { files, type ChangedFile } from "./reviewedFiles";

/** How many files the list keeps. */
const maxListed = 1000;
/** A longer name is not shown in a notification, which has one line. */
const maxName = 40;

/**
 * Reports the files that changed while a session ran and that programs outside
 * the sandbox act upon, and lists them.
 */
export class Review {
  private readonly changed = new Map<string, ChangedFile>();
  private readonly batcher = new Batcher<ChangedFile[]>(
    (session) => void this.notify(session),
    (all) => void this.notify(all.flat()),
  );

  constructor(
    manager: Manager,
    private readonly log: vscode.LogOutputChannel,
  ) {
    manager.onDidReview((findings) => this.record(findings));
  }

  private record(findings: Finding[]): void {
    for (const { message } of findings) this.log.warn(message);
    const all = files(findings);
    for (const file of all) {
      this.changed.delete(file.path);
      this.changed.set(file.path, file);
    }
    for (const oldest of this.changed.keys()) {
      if (this.changed.size <= maxListed) break;
      this.changed.delete(oldest);
    }
    this.batcher.add(all);
  }

  private async notify(all: ChangedFile[]): Promise<void> {
    const show = vscode.l10n.t("Show…");
    if ((await warn(message(all), show)) === show) await this.list();
  }

  /** How many files there are to check. */
  get size(): number {
    return this.changed.size;
  }

  /** Lists the files, newest first, and opens the chosen one. */
  async list(): Promise<void> {
    const items = [...this.changed.values()].reverse().map((file) => ({
      label: text(vscode.workspace.asRelativePath(file.path)),
      description: file.change,
      detail: text(file.why),
      file,
    }));
    if (items.length === 0) {
      void inform(
        vscode.l10n.t("No session has changed a file that programs outside the sandbox act on."),
      );
      return;
    }
    const chosen = await vscode.window.showQuickPick(items, {
      title: vscode.l10n.t("Check before programs outside the sandbox use it"),
      placeHolder: vscode.l10n.t("Select a file to open it."),
      matchOnDetail: true,
    });
    if (chosen === undefined) return;
    try {
      await open(vscode.Uri.file(chosen.file.path));
    } catch (error) {
      void fail(describe(error));
    }
  }
}

/** The notification's line, with the words of the other clients. */
function message(all: ChangedFile[]): string {
  const paths = [...new Set(all.map((file) => file.path))];
  const name = quote(path.basename(paths[0] ?? ""));
  if (paths.length > 1)
    return vscode.l10n.t("Check {0} changed files before programs outside the sandbox use them.", paths.length);
  if (name.length > maxName)
    return vscode.l10n.t("Check a changed file before programs outside the sandbox use it.");
  return vscode.l10n.t("Check {0} before programs outside the sandbox use it.", name);
}

/** Opens a file, or shows a directory, such as a new repository. */
async function open(uri: vscode.Uri): Promise<void> {
  const { type } = await vscode.workspace.fs.stat(uri);
  if (type === vscode.FileType.Directory) await vscode.commands.executeCommand("revealInExplorer", uri);
  else await vscode.window.showTextDocument(uri);
}
