import * as vscode from "vscode";

import { linkedProgram } from "./confine";
import { factOf, type Fact } from "./facts";
import type { ShellSessions } from "./shellSessions";
import type { Terminals } from "./terminals";

/** How often, and after how many milliseconds, a starting shell is looked at. */
const tries = 20;
const pause = 250;

/** How many of the window's terminals are confined. */
export interface Count {
  confined: number;
  total: number;
  /** The active terminal's; undefined if there is none, or no process in it. */
  active: Fact | undefined;
}

/**
 * Counts the terminals that are confined, by their processes. A terminal that
 * another extension draws has none, and is not counted.
 */
export class Counter {
  private readonly changed = new vscode.EventEmitter<void>();
  private timer: NodeJS.Timeout | undefined;
  private left = tries;
  private round = 0;

  /** Fires when the count may have changed. */
  readonly onDidChange = this.changed.event;
  count: Count = { confined: 0, total: 0, active: undefined };

  constructor(
    context: vscode.ExtensionContext,
    private readonly terminals: Terminals,
    shells: ShellSessions,
  ) {
    // Only Linux shows these facts.
    if (process.platform !== "linux") return;
    const again = () => {
      this.left = tries;
      void this.refresh();
    };
    context.subscriptions.push(
      this.changed,
      { dispose: () => clearTimeout(this.timer) },
      terminals.onDidChange(again),
      shells.onDidChange(again),
      vscode.window.onDidOpenTerminal(again),
      vscode.window.onDidCloseTerminal(again),
      vscode.window.onDidChangeActiveTerminal(again),
    );
    again();
  }

  private async refresh(): Promise<void> {
    clearTimeout(this.timer);
    const round = ++this.round;
    const program = await linkedProgram();
    const all = vscode.window.terminals.filter(({ exitStatus }) => exitStatus === undefined);
    const facts = await Promise.all(all.map((terminal) => this.fact(terminal, program)));
    if (round !== this.round) return; // a newer refresh is running
    // Who does not get confined in time is not.
    const settled = facts.map((fact) => (fact === "starting" && this.left <= 0 ? "open" : fact));
    const known = settled.filter((fact) => fact !== undefined);
    const active = vscode.window.activeTerminal;
    const count: Count = {
      confined: known.filter((fact) => fact === "confined").length,
      total: known.length,
      active: active === undefined ? undefined : settled[all.indexOf(active)],
    };
    if (known.includes("starting") && this.left-- > 0) {
      this.timer = setTimeout(() => void this.refresh(), pause);
    }
    if (JSON.stringify(count) === JSON.stringify(this.count)) return;
    this.count = count;
    this.changed.fire();
  }

  private async fact(terminal: vscode.Terminal, program: string | undefined): Promise<Fact | undefined> {
    const ours = this.terminals.of(terminal);
    if (ours !== undefined) {
      if (ours.spawned === undefined) return "starting";
      return ours.spawned.sandbox.applied ? "confined" : "open";
    }
    if ("pty" in terminal.creationOptions) return undefined;
    const pid = await terminal.processId;
    if (pid === undefined) return undefined;
    return program === undefined ? "open" : factOf(pid, program);
  }
}
