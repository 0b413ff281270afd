import * as vscode from "vscode";
import type { CancellationToken } from "vscode-jsonrpc";

import { withHint } from "./denialText";
import type { Manager } from "./manager";
import { RequestAccessRequest, type Decision, type RequestAccessParams } from "./protocol.gen";

/**
 * Asks the user before an operation is refused, while the program waits. If
 * nobody answers, it is refused. Once nobody waits any more, the list of choices
 * closes. VS Code has no way to close a message, so a late answer to it is told.
 */
export class Approvals {
  constructor(manager: Manager) {
    manager.onRequest(RequestAccessRequest, async (params, token) => {
      const gone = new Promise<Decision>((resolve) => {
        token.onCancellationRequested(() => resolve("deny"));
      });
      return { decision: await Promise.race([this.ask(params, token), gone]) };
    });
  }

  private async ask(params: RequestAccessParams, token: CancellationToken): Promise<Decision> {
    const [once, more, deny] = [vscode.l10n.t("Allow Once"), vscode.l10n.t("Allow…"), vscode.l10n.t("Deny")];
    // A single key press accepts the first button.
    const buttons = [deny, ...(params.choices.includes("once") ? [once] : []), more];
    const choice = await vscode.window.showWarningMessage(withHint(params.message, params.hint), ...buttons);
    if (choice !== once && choice !== more) return "deny";
    if (token.isCancellationRequested) {
      const late = vscode.l10n.t("Nothing was allowed: the program no longer waits for your answer.");
      void vscode.window.showInformationMessage(late);
      return "deny";
    }
    return choice === once ? "once" : this.choose(params, token);
  }

  private async choose(params: RequestAccessParams, token: CancellationToken): Promise<Decision> {
    const setting = params.suggestion?.message ?? "";
    const all: { label: string; detail?: string; decision: Decision }[] = [
      { label: vscode.l10n.t("Don't allow"), decision: "deny" },
      { label: vscode.l10n.t("Once"), decision: "once" },
      { label: vscode.l10n.t("Until the session ends"), decision: "session" },
      { label: vscode.l10n.t("For this project"), detail: setting, decision: "project" },
      { label: vscode.l10n.t("For all my projects"), detail: setting, decision: "user" },
    ];
    const offered = all.filter(({ decision }) => params.choices.includes(decision));
    const chosen = await vscode.window.showQuickPick(
      offered,
      { title: params.message, placeHolder: vscode.l10n.t("Allow for how long?"), ignoreFocusOut: true },
      token,
    );
    return chosen?.decision ?? "deny";
  }
}
