import * as vscode from "vscode";

import { suggestedWord } from "./suggestedWord";

/** Offers what a problem in a settings file says itself. */
export class QuickFixes implements vscode.CodeActionProvider {
  constructor(context: vscode.ExtensionContext) {
    const kinds = { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] };
    const files = { scheme: "file", pattern: "**/settings.json" };
    context.subscriptions.push(vscode.languages.registerCodeActionsProvider(files, this, kinds));
  }

  provideCodeActions(
    document: vscode.TextDocument,
    _range: vscode.Range,
    { diagnostics }: vscode.CodeActionContext,
  ): vscode.CodeAction[] {
    return diagnostics
      .filter(({ source }) => source === "sandbox-sidecar")
      .flatMap((diagnostic) => this.fixesOf(document, diagnostic));
  }

  private fixesOf(document: vscode.TextDocument, diagnostic: vscode.Diagnostic): vscode.CodeAction[] {
    const word = suggestedWord(diagnostic.message);
    const old = document.getText(diagnostic.range);
    if (word !== undefined && /^"[^"]*"$/.test(old)) {
      const fix = new vscode.CodeAction(vscode.l10n.t('Change to "{0}"', word), vscode.CodeActionKind.QuickFix);
      fix.edit = new vscode.WorkspaceEdit();
      fix.edit.replace(document.uri, diagnostic.range, `"${word}"`);
      fix.diagnostics = [diagnostic];
      fix.isPreferred = true;
      return [fix];
    }
    if (!diagnostic.message.includes("unless you trust") || !vscode.workspace.isTrusted) return [];
    const title = vscode.l10n.t("Trust Project Settings…");
    const ask = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
    ask.command = { command: "sandboxSidecar.trustProject", title };
    ask.diagnostics = [diagnostic];
    return [ask];
  }
}
