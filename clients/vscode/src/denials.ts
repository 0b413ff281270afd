import * as vscode from "vscode";

import type { Allow } from "./allow";
import { configuration } from "./configuration";
import { withHint } from "./denialText";
import { json, line } from "./display";
import { describe } from "./errors";
import { Batcher } from "./batcher";
import type { Manager } from "./manager";
import { LimitReachedNotification, ListRequest, type DeniedParams } from "./protocol.gen";

/** How many denials the list keeps. */
const maxListed = 200;

/**
 * Reports each denial of a session once, and offers the setting that would
 * allow it.
 */
export class Denials {
  private readonly seen = new Map<string, { denial: DeniedParams; total: number }>();
  private readonly batcher = new Batcher<DeniedParams>(
    (denial) => void this.notify(denial),
    (all) => void this.notifySummary(all),
  );

  constructor(
    private readonly manager: Manager,
    private readonly allow: Allow,
    private readonly log: vscode.LogOutputChannel,
  ) {
    manager.onDidDeny((denial) => this.record(denial));
    manager.onNotification(LimitReachedNotification, ({ message }) => {
      const text = line(message);
      this.log.info(text);
      void vscode.window.showWarningMessage(text);
    });
  }

  private record(denial: DeniedParams): void {
    this.log.info(`${denial.message}${denial.missed === undefined ? "" : ` ${denial.missed} more were not reported.`}`);
    const key = `${denial.access} ${denial.target} ${denial.detail ?? ""}`;
    const before = this.seen.get(key);
    this.seen.delete(key);
    this.seen.set(key, { denial, total: (before?.total ?? 0) + denial.count });
    const oldest = this.seen.keys().next();
    if (this.seen.size > maxListed && oldest.done !== true) this.seen.delete(oldest.value);
    if (before !== undefined || configuration().denials === "log") return;
    this.batcher.add(denial);
  }

  private async notify(denial: DeniedParams): Promise<void> {
    const { suggestion, hint } = denial;
    const [allow, copy] = [vscode.l10n.t("Allow…"), vscode.l10n.t("Copy Setting")];
    const choice = await vscode.window.showWarningMessage(
      withHint(denial.message, hint),
      ...(suggestion === undefined ? [] : [allow, copy]),
    );
    if (suggestion === undefined || choice === undefined) return;
    if (choice === copy) await vscode.env.clipboard.writeText(`"${suggestion.setting}": ${json(suggestion.value)}`);
    else await this.ask(denial);
  }

  private async ask(denial: DeniedParams): Promise<void> {
    if (denial.suggestion === undefined) return;
    try {
      await this.allow.ask(denial.message, denial.suggestion, await this.projectOf(denial.sessionId));
    } catch (error) {
      void vscode.window.showErrorMessage(describe(error));
    }
  }

  private async projectOf(sessionId: string): Promise<string | undefined> {
    const { sessions } = await this.manager.request(ListRequest, {});
    return sessions.find((session) => session.sessionId === sessionId)?.projectDir;
  }

  private async notifySummary(all: DeniedParams[]): Promise<void> {
    const show = vscode.l10n.t("Show…");
    const [first] = all;
    if (first === undefined) return;
    const count = all.reduce((total, { missed }) => total + 1 + (missed ?? 0), 0);
    const message = vscode.l10n.t("The sandbox refused {0} operations. The first: {1}", count, first.message);
    if ((await vscode.window.showWarningMessage(message, show)) === show) await this.list();
  }

  /** Lists the denials, newest first, and offers to allow them. */
  async list(): Promise<void> {
    const items = [...this.seen.values()].reverse().map(({ denial, total }) => {
      const advice = denial.suggestion?.message ?? denial.hint ?? "";
      // After a long label it would be out of sight.
      return {
        label: denial.message,
        detail: total > 1 ? vscode.l10n.t("({0} times) {1}", total, advice) : advice,
        denial,
      };
    });
    if (items.length === 0) {
      void vscode.window.showInformationMessage(vscode.l10n.t("Nothing was refused in this window."));
      return;
    }
    const placeHolder = vscode.l10n.t("Select a denial to allow it. One without a setting cannot be allowed.");
    const chosen = await vscode.window.showQuickPick(items, {
      title: vscode.l10n.t("Sandbox denials"),
      placeHolder,
    });
    if (chosen !== undefined) await this.ask(chosen.denial);
  }
}
