import { readFile, realpath } from "node:fs/promises";
import * as path from "node:path";

import * as vscode from "vscode";

import { text } from "./display";
import type { Manager } from "./manager";
import { fail } from "./notices";
import { SettingsDiagnosticsNotification, type Diagnostic, type Severity } from "./protocol.gen";
import { rangeOf } from "./textRange";

const severities: Record<Severity, vscode.DiagnosticSeverity> = {
  error: vscode.DiagnosticSeverity.Error,
  warning: vscode.DiagnosticSeverity.Warning,
  info: vscode.DiagnosticSeverity.Information,
};

/** Shows problems in settings files in the Problems view. */
export class SettingsDiagnostics {
  private readonly collection = vscode.languages.createDiagnosticCollection("sandbox-sidecar");
  private readonly notified = new Set<string>();
  /**
   * Only the latest diagnostics of a file count, even if earlier ones take
   * longer to prepare.
   */
  private readonly rounds = new Map<string, number>();

  constructor(context: vscode.ExtensionContext, manager: Manager) {
    context.subscriptions.push(this.collection);
    manager.onNotification(
      SettingsDiagnosticsNotification,
      ({ file, diagnostics }) => void this.show(file, diagnostics),
    );
    manager.onDidChange(({ is }) => {
      if (is === "idle") this.collection.clear();
    });
  }

  private async show(file: string, diagnostics: Diagnostic[]): Promise<void> {
    const round = (this.rounds.get(file) ?? 0) + 1;
    this.rounds.set(file, round);
    const uri = await this.uriOf(file);
    const lines = (await readFile(file, "utf8").catch(() => "")).split(/\r?\n/);
    if (this.rounds.get(file) !== round) return;
    this.collection.set(
      uri,
      diagnostics.map(({ line, column, severity, key, message }) => {
        const [startLine, start, endLine, end] = rangeOf(lines, line, column);
        const result = new vscode.Diagnostic(
          new vscode.Range(startLine, start, endLine, end),
          message,
          severities[severity],
        );
        result.source = "sandbox-sidecar";
        if (key !== undefined) result.code = key;
        return result;
      }),
    );
    const worst = diagnostics.find(({ severity }) => severity === "error");
    if (worst !== undefined) void this.notify(uri, worst);
  }

  /**
   * The sidecar reports real paths. An editor may have opened the file by
   * another path.
   */
  private async uriOf(file: string): Promise<vscode.Uri> {
    for (const document of vscode.workspace.textDocuments) {
      if (document.uri.scheme !== "file" || path.basename(document.uri.fsPath) !== path.basename(file)) continue;
      if ((await realpath(document.uri.fsPath).catch(() => undefined)) === file) return document.uri;
    }
    return vscode.Uri.file(file);
  }

  /**
   * Reports an invalid setting once, unless its file is visible: there the
   * editor shows it.
   */
  private async notify(uri: vscode.Uri, diagnostic: Diagnostic): Promise<void> {
    const { dir, base } = path.parse(uri.fsPath);
    const file = text(path.join(path.basename(dir), base));
    const message = `${file}:${diagnostic.line}: ${diagnostic.message}`;
    const visible = vscode.window.visibleTextEditors.some(
      (editor) => editor.document.uri.toString() === uri.toString(),
    );
    if (visible || this.notified.has(message)) return;
    this.notified.add(message);
    const open = vscode.l10n.t("Open File");
    if ((await fail(vscode.l10n.t("Sandbox settings: {0}", message), open)) === open) {
      const selection = new vscode.Range(diagnostic.line - 1, 0, diagnostic.line - 1, 0);
      await vscode.window.showTextDocument(uri, { selection });
    }
  }
}
