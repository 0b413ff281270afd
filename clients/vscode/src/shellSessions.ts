import * as vscode from "vscode";

import type { Confine } from "./confine";
import type { Manager } from "./manager";
import { warn } from "./notices";
import { StartedNotification, type StartedParams } from "./protocol.gen";

/** The variable by which shells find the window's sidecar. */
const variable = "SANDBOX_WINDOW";

/**
 * The sessions of shells that the editor, not the sidecar, has started: confined
 * terminals, tasks and agents' commands. They report to the sidecar.
 */
export class ShellSessions {
  private readonly running = new Map<string, { started: StartedParams; stale: boolean }>();
  private readonly warned = new Set<string>();
  private confine: Confine | undefined;
  private readonly changed = new vscode.EventEmitter<void>();

  /** Fires when a session has started or ended. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly manager: Manager,
  ) {
    manager.onNotification(StartedNotification, (started) => this.add(started));
    context.subscriptions.push(
      this.changed,
      manager.onDidExit((sessionId) => (this.running.delete(sessionId) ? this.changed.fire() : undefined)),
      manager.onDidChange(({ is }) => {
        if (is !== "running") this.running.clear();
        this.offer();
      }),
    );
  }

  /** Offers the window to shells while everything is confined. */
  follow(confine: Confine): void {
    this.confine = confine;
    this.context.subscriptions.push(confine.onDidChange(() => this.offer()));
    this.offer();
  }

  /**
   * Tells new terminals and tasks where to report. Without confined shells the
   * variable would only make the editor ask to relaunch its terminals.
   */
  private offer(): void {
    const { environmentVariableCollection: variables } = this.context;
    variables.persistent = false; // the next window has another socket
    variables.description = vscode.l10n.t("Sandboxed shells report to this window.");
    const path = this.confine?.active === true ? this.manager.now?.sidecar.initializeResult.window : undefined;
    if (path === undefined) variables.delete(variable);
    else if (variables.get(variable)?.value !== path) variables.replace(variable, path);
    // A sidecar that ends with its window is not started again: get refuses.
    if (this.confine?.active === true && this.manager.state.is === "idle") this.manager.get().catch(() => undefined);
  }

  private add(started: StartedParams): void {
    this.running.set(started.sessionId, { started, stale: false });
    this.changed.fire();
    if (started.kind === "terminal") return; // it prints its own
    for (const warning of started.sandbox.warnings) {
      if (this.warned.has(warning)) continue;
      this.warned.add(warning);
      void warn(vscode.l10n.t("Sandbox: {0}", warning));
    }
  }

  /**
   * Marks sessions that would get another policy if they were new. Returns how
   * many terminals were not marked before.
   */
  markStale(stale: ReadonlySet<string>): number {
    let newlyStale = 0;
    for (const [id, session] of this.running) {
      if (stale.has(id) && !session.stale && session.started.kind === "terminal") newlyStale += 1;
      session.stale = stale.has(id);
    }
    return newlyStale;
  }

  /** Returns the project of a terminal's session; undefined if it has none here. */
  async projectOf(terminal: vscode.Terminal): Promise<string | undefined> {
    if (this.running.size === 0 || "pty" in terminal.creationOptions) return undefined;
    const pid = await terminal.processId;
    return [...this.running.values()].find(({ started }) => started.shellPid === pid)?.started.projectDir;
  }

  /** Returns the session of a terminal if it is stale. */
  async staleOf(terminal: vscode.Terminal): Promise<StartedParams | undefined> {
    const pid = await terminal.processId;
    return [...this.running.values()].find(({ started, stale }) => stale && started.shellPid === pid)?.started;
  }
}
