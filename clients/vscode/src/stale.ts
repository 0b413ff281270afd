import * as vscode from "vscode";

import { text } from "./display";
import { fromHome } from "./home";
import type { Manager } from "./manager";
import { inform, warn } from "./notices";
import { PolicyGetRequest, SettingsChangedNotification } from "./protocol.gen";
import type { ShellSessions } from "./shellSessions";
import { untrusted, type Terminals } from "./terminals";

/**
 * How long, in milliseconds, a change of the settings by the user's command is
 * expected. The command has told about it already.
 */
const quietTime = 5000;

/** Marks terminals that use old settings, and offers to reopen them. */
export class Stale {
  private quietUntil = 0;
  /** Asks before a terminal opens that would not be sandboxed. */
  mayOpen: (projectDir: string) => Promise<boolean> = () => Promise.resolve(true);

  constructor(
    private readonly manager: Manager,
    private readonly terminals: Terminals,
    private readonly shells: ShellSessions,
  ) {
    manager.onNotification(SettingsChangedNotification, ({ staleSessions }) => {
      const stale = new Set(staleSessions.map((session) => session.sessionId));
      const newlyStale = terminals.markStale(stale) + shells.markStale(stale);
      const expected = Date.now() <= this.quietUntil;
      this.quietUntil = 0; // the change after it is another one
      if (newlyStale > 0 && !expected)
        void this.offer(newlyStale).catch((error: unknown) => void manager.showFailure(error));
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
    if ((await inform(message, ...(running ? [reopen] : []))) !== reopen) return;
    await this.reopen().catch((error: unknown) => void this.manager.showFailure(error));
  }

  private async offer(count: number): Promise<void> {
    const reopen = vscode.l10n.t("Reopen…");
    if (await this.isOff()) {
      // What is reopened would lose its sandbox, so that is not offered here.
      const text =
        count === 1
          ? vscode.l10n.t("New terminals are not sandboxed now. One running terminal is still sandboxed.")
          : vscode.l10n.t("New terminals are not sandboxed now. {0} running terminals are still sandboxed.", count);
      const on = vscode.l10n.t("Turn On…");
      if ((await warn(text, on)) === on) await vscode.commands.executeCommand("sandboxSidecar.turnOn");
      return;
    }
    const message =
      count === 1
        ? vscode.l10n.t("The sandbox settings changed. One running terminal still uses the old ones.")
        : vscode.l10n.t("The sandbox settings changed. {0} running terminals still use the old ones.", count);
    if ((await inform(message, reopen)) === reopen) await this.reopen();
  }

  /** Whether a stale terminal would be replaced by one without a sandbox. */
  private async isOff(): Promise<boolean> {
    const projects = await Promise.all(
      vscode.window.terminals.map(async (terminal) => {
        const pty = this.terminals.of(terminal);
        if (pty !== undefined) return pty.stale ? pty.options.place.projectDir : undefined;
        return (await this.shells.staleOf(terminal))?.projectDir;
      }),
    );
    for (const project of new Set(projects)) {
      if (project !== undefined && !(await this.restricted(project))) return true;
    }
    return false;
  }

  /**
   * Reports whether a terminal opens in a project: it is sandboxed, or the user
   * wants one that is not. Throws if the workspace is not trusted.
   */
  async opens(projectDir: string): Promise<boolean> {
    if (await this.restricted(projectDir)) return true;
    if (!vscode.workspace.isTrusted) throw untrusted();
    return this.mayOpen(projectDir);
  }

  private async restricted(projectDir: string): Promise<boolean> {
    return (await this.manager.request(PolicyGetRequest, { projectDir, kind: "terminal" })).policy.restricted;
  }

  /**
   * Lets the user select stale terminals, ends them, and opens new ones in
   * their places.
   */
  async reopen(): Promise<void> {
    const all = vscode.window.terminals.map(async (terminal) => {
      const pty = this.terminals.of(terminal);
      const shell = pty === undefined ? await this.shells.staleOf(terminal) : undefined;
      const place = pty?.stale === true ? pty.options.place : shell;
      if (place === undefined) return [];
      const { cwd, projectDir } = place;
      return [{ label: text(terminal.name), description: text(fromHome(cwd)), picked: true, terminal, pty, cwd, projectDir }];
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
    const allowed = new Map<string, boolean>();
    for (const { terminal, pty, cwd, projectDir } of chosen ?? []) {
      // One question for each project, not for each terminal.
      const opens = allowed.get(projectDir) ?? (await this.opens(projectDir));
      allowed.set(projectDir, opens);
      if (!opens) continue;
      const shell = pty === undefined ? shellOf(terminal) : undefined;
      if (shell !== undefined) vscode.window.createTerminal({ ...shell, cwd }).show();
      else await this.terminals.show(cwd, projectDir);
      terminal.dispose();
    }
  }
}

/**
 * The shell of a terminal, which may not be the editor's default any more;
 * undefined if that is not known.
 */
function shellOf({ creationOptions }: vscode.Terminal): vscode.TerminalOptions | undefined {
  if ("pty" in creationOptions || creationOptions.shellPath === undefined) return undefined;
  const { shellPath, shellArgs } = creationOptions;
  return { shellPath, ...(shellArgs === undefined ? {} : { shellArgs }) };
}
