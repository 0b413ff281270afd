import * as vscode from "vscode";
import type { CancellationToken } from "vscode-jsonrpc";

import { shortQuestion, valueOf } from "./denialText";
import { brief, quote } from "./display";
import { fromHome } from "./home";
import type { Manager } from "./manager";
import { longest } from "./notices";
import { RequestAccessRequest, type Decision, type RequestAccessParams } from "./protocol.gen";
import type { Terminals } from "./terminals";

/** How long a directory may be beside an answer. */
const longestDirectory = 30;

/** A question that nobody has answered yet. */
interface Question {
  id: number;
  params: RequestAccessParams;
  /** Cancelled once the program waits no more. */
  token: CancellationToken;
  /** The first call counts. */
  answer(decision: Decision): void;
}

/**
 * Asks the user before an operation is refused, while the program waits. The
 * notification, the bar and the terminal's name show the question until it is
 * answered, or nobody waits any more.
 */
export class Approvals {
  private readonly item = vscode.window.createStatusBarItem(
    "sandboxSidecar.questions",
    vscode.StatusBarAlignment.Left,
    91,
  );
  private readonly open = new Map<number, Question>();
  private last = 0;

  constructor(
    context: vscode.ExtensionContext,
    manager: Manager,
    private readonly terminals: Terminals,
  ) {
    this.item.name = vscode.l10n.t("Sandbox Questions");
    this.item.command = "sandboxSidecar.answer";
    this.item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
    context.subscriptions.push(this.item);
    manager.onRequest(RequestAccessRequest, async (params, token) => ({ decision: await this.ask(params, token) }));
    manager.onDidChange(({ is }) => {
      // Without a sidecar nobody waits for an answer.
      if (is !== "running") for (const question of [...this.open.values()]) question.answer("deny");
    });
  }

  /** Shows a question until it is settled, and returns the decision. */
  private async ask(params: RequestAccessParams, token: CancellationToken): Promise<Decision> {
    const id = ++this.last;
    const decision = new Promise<Decision>((resolve) => {
      token.onCancellationRequested(() => resolve("deny"));
      if (token.isCancellationRequested) resolve("deny");
      this.open.set(id, { id, params, token, answer: resolve });
    });
    this.show();
    const label = vscode.l10n.t("Answer…");
    const link = `[${label}](command:sandboxSidecar.answer?${encodeURIComponent(JSON.stringify([id]))})`;
    // The link comes first, as the line may be cut.
    const title = `${link} ${shortQuestion(params.message)}`;
    // A progress stays until it has ended, and closes by itself. No message does.
    const location = vscode.ProgressLocation.Notification;
    // It has no button: the only one that it could have is a blue "Cancel", which
    // refuses. The link leads to a list that begins with the refusal.
    void vscode.window.withProgress({ location, title, cancellable: false }, () => decision).then(undefined, () => undefined);
    try {
      return await decision;
    } finally {
      this.open.delete(id);
      this.show();
    }
  }

  private show(): void {
    const all = [...this.open.values()];
    this.terminals.markWaiting(new Set(all.map(({ params }) => params.sessionId)));
    const [first] = all;
    if (first === undefined) return this.item.hide();
    const text = all.length === 1 ? vscode.l10n.t("1 question") : vscode.l10n.t("{0} questions", all.length);
    this.item.text = `$(question) ${text}`;
    this.item.tooltip = brief(first.params.message, longest);
    this.item.accessibilityInformation = {
      label: vscode.l10n.t("Sandbox: {0}. {1}", text, first.params.message),
      role: "button",
    };
    this.item.show();
  }

  /** Lets the user answer a question, else the oldest one. */
  async answer(id?: unknown): Promise<void> {
    const question = typeof id === "number" ? this.open.get(id) : this.open.values().next().value;
    if (question === undefined) return;
    const decision = await this.choose(question);
    if (decision !== undefined) question.answer(decision);
  }

  /** Offers the decisions; undefined if the user has chosen none. */
  private async choose({ params, token }: Question): Promise<Decision | undefined> {
    const { suggestion } = params;
    const setting = suggestion === undefined ? "" : `"${suggestion.setting}": ${valueOf(suggestion)}`;
    const directory = params.directory === undefined ? "" : quote(fromHome(params.directory), longestDirectory);
    const all: { label: string; description?: string; detail?: string; decision: Decision }[] = [
      { label: vscode.l10n.t("Don't allow"), detail: params.hint ?? "", decision: "deny" },
      { label: vscode.l10n.t("Once"), decision: "once" },
      { label: vscode.l10n.t("Until the session ends"), decision: "session" },
      {
        label: vscode.l10n.t("Its directory, for this session"),
        description: directory,
        detail:
          params.access === "read"
            ? vscode.l10n.t("reads everything in it, except known secrets")
            : vscode.l10n.t("reads, changes and removes everything in it, except known secrets"),
        decision: "directory",
      },
      { label: vscode.l10n.t("For this project"), detail: setting, decision: "project" },
      { label: vscode.l10n.t("For all my projects"), detail: setting, decision: "user" },
    ];
    const offered = all.filter(({ decision }) => decision === "deny" || params.choices.includes(decision));
    const chosen = await vscode.window.showQuickPick(
      offered,
      { title: params.message, placeHolder: vscode.l10n.t("Allow for how long?"), ignoreFocusOut: true },
      token,
    );
    return chosen?.decision;
  }
}
