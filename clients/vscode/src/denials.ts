import * as vscode from "vscode";

import type { Allow } from "./allow";
import { configuration } from "./configuration";
import { withHint } from "./denialText";
import { json } from "./display";
import { describe } from "./errors";
import { Folding } from "./folding";
import type { Manager } from "./manager";
import { ListRequest, type DeniedParams } from "./protocol.gen";

/** So many are kept for the list. */
const most = 200;

/** Tells the user of what sessions were refused, each thing once, and offers the setting that would allow it. */
export class Denials {
  private readonly seen = new Map<string, { what: DeniedParams; sum: number }>();
  private readonly folding = new Folding<DeniedParams>(
    (what) => void this.tell(what),
    (all) => void this.tellSum(all),
  );

  constructor(
    private readonly manager: Manager,
    private readonly allow: Allow,
    private readonly log: vscode.LogOutputChannel,
  ) {
    manager.onDidDeny((what) => this.collect(what));
  }

  private collect(what: DeniedParams): void {
    this.log.info(`${what.message}${what.missed === undefined ? "" : ` ${what.missed} more are not told.`}`);
    const key = `${what.access} ${what.target}`;
    const before = this.seen.get(key);
    this.seen.delete(key);
    this.seen.set(key, { what, sum: (before?.sum ?? 0) + what.count });
    const oldest = this.seen.keys().next();
    if (this.seen.size > most && oldest.done !== true) this.seen.delete(oldest.value);
    if (before !== undefined || configuration().denials === "log") return;
    this.folding.add(what);
  }

  private async tell(what: DeniedParams): Promise<void> {
    const { suggestion, hint } = what;
    const [allow, copy] = [vscode.l10n.t("Allow…"), vscode.l10n.t("Copy Setting")];
    const choice = await vscode.window.showWarningMessage(
      withHint(what.message, hint),
      ...(suggestion === undefined ? [] : [allow, copy]),
    );
    if (suggestion === undefined || choice === undefined) return;
    if (choice === copy) await vscode.env.clipboard.writeText(`"${suggestion.setting}": ${json(suggestion.value)}`);
    else await this.ask(what);
  }

  private async ask(what: DeniedParams): Promise<void> {
    if (what.suggestion === undefined) return;
    try {
      await this.allow.ask(what.message, what.suggestion, await this.projectOf(what.sessionId));
    } catch (error) {
      void vscode.window.showErrorMessage(describe(error));
    }
  }

  private async projectOf(sessionId: string): Promise<string | undefined> {
    const { sessions } = await this.manager.request(ListRequest, {});
    return sessions.find((session) => session.sessionId === sessionId)?.projectDir;
  }

  private async tellSum(all: DeniedParams[]): Promise<void> {
    const show = vscode.l10n.t("Show…");
    const [first] = all;
    if (first === undefined) return;
    const count = all.reduce((sum, { missed }) => sum + 1 + (missed ?? 0), 0);
    const message = vscode.l10n.t("The sandbox refused {0} things, such as: {1}", count, first.message);
    if ((await vscode.window.showWarningMessage(message, show)) === show) await this.list();
  }

  /** Lists what was refused, the newest first, and offers to allow it. */
  async list(): Promise<void> {
    const items = [...this.seen.values()].reverse().map(({ what, sum }) => {
      const advice = what.suggestion?.message ?? what.hint ?? "";
      // Behind a long label it would be out of sight.
      return { label: what.message, detail: sum > 1 ? vscode.l10n.t("({0} times) {1}", sum, advice) : advice, what };
    });
    if (items.length === 0) {
      void vscode.window.showInformationMessage(vscode.l10n.t("Nothing was refused in this window."));
      return;
    }
    const placeHolder = vscode.l10n.t("Choose one to allow it. What has no setting below it cannot be allowed by one.");
    const chosen = await vscode.window.showQuickPick(items, {
      title: vscode.l10n.t("What the sandbox refused"),
      placeHolder,
    });
    if (chosen !== undefined) await this.ask(chosen.what);
  }
}
