import * as vscode from "vscode";

import { text } from "./display";
import { fromHome } from "./home";
import type { Manager } from "./manager";
import { inform } from "./notices";
import { SettingsChangedNotification } from "./protocol.gen";
import type { ShellSessions } from "./shellSessions";
import type { Terminals } from "./terminals";

/**
 * How long, in milliseconds, a change of the settings by the user's command is
 * expected. The command has told about it already.
 */
const quietTime = 5000;

/** Marks terminals that use old settings, and offers to reopen them. */
export class Stale {
  private quietUntil = 0;

  constructor(
    manager: Manager,
    private readonly terminals: Terminals,
    private readonly shells: ShellSessions,
  ) {
    manager.onNotification(SettingsChangedNotification, ({ staleSessions }) => {
      const stale = new Set(staleSessions.map((session) => session.sessionId));
      const newlyStale = terminals.markStale(stale) + shells.markStale(stale);
      const expected = Date.now() <= this.quietUntil;
      this.quietUntil = 0; // the change after it is another one
      if (newlyStale > 0 && !expected) void this.offer(newlyStale);
    });
  }

  /** Says that the next change is a command's, which offers to reopen itself. */
  expectChange(): void {
    this.quietUntil = Date.now() + quietTime;
  }

  /** Tells what a command has written, and offers to reopen what is older. */
  async tellWritten(message: string): Promise<void> {
    const reopen = vscode.l10n.t("Reopen…");
    const running = vscode.window.terminals.some((terminal) => this.terminals.of(terminal) !== undefined);
    if ((await inform(message, ...(running ? [reopen] : []))) === reopen) await this.reopen();
  }

  private async offer(count: number): Promise<void> {
    const reopen = vscode.l10n.t("Reopen…");
    const message =
      count === 1
        ? vscode.l10n.t("The sandbox settings changed. One running terminal still uses the old ones.")
        : vscode.l10n.t("The sandbox settings changed. {0} running terminals still use the old ones.", count);
    if ((await inform(message, reopen)) === reopen) await this.reopen();
  }

  /**
   * Lets the user select stale terminals, ends them, and opens new ones in
   * their places.
   */
  async reopen(): Promise<void> {
    const all = vscode.window.terminals.map(async (terminal) => {
      const pty = this.terminals.of(terminal);
      const shell = pty === undefined ? await this.shells.staleOf(terminal) : undefined;
      const cwd = pty?.stale === true ? (await pty.options.params()).cwd : shell?.cwd;
      if (cwd === undefined) return [];
      return [{ label: text(terminal.name), description: text(fromHome(cwd)), picked: true, terminal, pty, shell }];
    });
    const open = (await Promise.all(all)).flat();
    if (open.length === 0) {
      void inform(vscode.l10n.t("Every sandboxed terminal uses the current settings."));
      return;
    }
    const chosen = await vscode.window.showQuickPick(open, {
      canPickMany: true,
      title: vscode.l10n.t("Reopen terminals"),
      placeHolder: vscode.l10n.t("Programs in the selected terminals are ended."),
    });
    for (const { terminal, pty, shell } of chosen ?? []) {
      if (shell !== undefined) vscode.window.createTerminal({ cwd: shell.cwd }).show();
      if (pty !== undefined) {
        const { cwd, projectDir } = await pty.options.params();
        await this.terminals.open(cwd, projectDir ?? cwd);
      }
      terminal.dispose();
    }
  }
}
