import * as vscode from "vscode";

import { withHint } from "./denialText";
import type { Manager } from "./manager";
import { RequestAccessRequest, type Decision, type RequestAccessParams } from "./protocol.gen";

/**
 * Asks the user before an operation is refused, while the program waits. If
 * nobody answers, it is refused.
 */
export class Approvals {
  constructor(manager: Manager) {
    manager.onRequest(RequestAccessRequest, async (params, token) => {
      const gone = new Promise<Decision>((resolve) => {
        token.onCancellationRequested(() => resolve("deny"));
      });
      return { decision: await Promise.race([this.ask(params), gone]) };
    });
  }

  private async ask(params: RequestAccessParams): Promise<Decision> {
    const [once, more, deny] = [vscode.l10n.t("Allow Once"), vscode.l10n.t("Allow…"), vscode.l10n.t("Deny")];
    // A single key press accepts the first button.
    const buttons = [deny, ...(params.choices.includes("once") ? [once] : []), more];
    const choice = await vscode.window.showWarningMessage(withHint(params.message, params.hint), ...buttons);
    if (choice === once) return "once";
    return choice === more ? this.choose(params) : "deny";
  }

  private async choose(params: RequestAccessParams): Promise<Decision> {
    const setting = params.suggestion?.message ?? "";
    const all: { label: string; detail?: string; decision: Decision }[] = [
      { label: vscode.l10n.t("Don't allow"), decision: "deny" },
      { label: vscode.l10n.t("Once"), decision: "once" },
      { label: vscode.l10n.t("Until the session ends"), decision: "session" },
      { label: vscode.l10n.t("For this project"), detail: setting, decision: "project" },
      { label: vscode.l10n.t("For all my projects"), detail: setting, decision: "user" },
    ];
    const offered = all.filter(({ decision }) => params.choices.includes(decision));
    const chosen = await vscode.window.showQuickPick(offered, {
      title: params.message,
      placeHolder: vscode.l10n.t("Allow for how long?"),
      ignoreFocusOut: true,
    });
    return chosen?.decision ?? "deny";
  }
}
