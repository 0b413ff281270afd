import * as vscode from "vscode";

import type { Confine } from "./confine";
import type { Counter } from "./count";
import { quote } from "./display";
import { describe } from "./errors";
import { folderInFront } from "./folders";
import type { Manager, State } from "./manager";
import { PolicyGetRequest, SettingsChangedNotification } from "./protocol.gen";
import { escapeMarkdown, missing, summarize, unenforced, type Policies, type Summary } from "./summary";
import type { ShellSessions } from "./shellSessions";
import type { Terminals } from "./terminals";

/** The commands that the hover links to. */
const linked = ["showPolicy", "openUserSettings", "doctor", "showStatus"] as const;

/** What the bar shows before the number of terminals. */
interface Shown {
  icon: string;
  /** A word for the state; undefined if the number says it all. */
  word: string | undefined;
  severity?: "warning" | "error" | undefined;
}

/** What the folder's new sessions would get. */
interface Folder {
  name: string;
  summary: Summary;
  policies: Policies;
  missing: string[];
}

/**
 * The status bar item. It states facts: whether the terminal in front is
 * sandboxed, and how many are. Without a terminal it states the settings. Its
 * hover has at most three lines, and links.
 */
export class Status {
  private readonly item = vscode.window.createStatusBarItem(
    "sandboxSidecar.status",
    vscode.StatusBarAlignment.Left,
    90,
  );
  private round = 0;

  /** What the settings sandbox; undefined if nobody has read them yet. */
  on: { terminal: boolean; tool: boolean } | undefined;

  constructor(
    context: vscode.ExtensionContext,
    private readonly manager: Manager,
    private readonly terminals: Terminals,
    private readonly shells: ShellSessions,
    private readonly counter: Counter,
    private readonly confine: Confine,
  ) {
    this.item.name = vscode.l10n.t("Sandbox");
    this.item.command = "sandboxSidecar.showStatus";
    this.item.show();
    const refresh = () => void this.refresh();
    manager.onNotification(SettingsChangedNotification, refresh);
    context.subscriptions.push(
      this.item,
      manager.onDidChange(refresh),
      terminals.onDidChange(refresh),
      counter.onDidChange(refresh),
      confine.onDidChange(refresh),
      vscode.window.onDidChangeActiveTerminal(refresh),
      vscode.window.onDidChangeActiveTextEditor(refresh),
      vscode.workspace.onDidChangeWorkspaceFolders(refresh),
      vscode.workspace.onDidGrantWorkspaceTrust(refresh),
    );
    refresh();
  }

  private async refresh(): Promise<void> {
    const round = ++this.round;
    const { state } = this.manager;
    if (state.is !== "running") {
      this.on = undefined;
      this.showNotRunning(state);
      return;
    }
    const folder = await folderInFront(this.terminals, this.shells);
    if (round !== this.round) return; // a newer refresh is running
    if (folder === undefined) { this.on = undefined; this.show({ icon: "shield", word: vscode.l10n.t("no folder") }); return; }
    const projectDir = folder.uri.fsPath;
    try {
      const [terminal, tool] = await Promise.all([
        this.manager.request(PolicyGetRequest, { projectDir, kind: "terminal" }),
        this.manager.request(PolicyGetRequest, { projectDir, kind: "tool" }),
      ]);
      if (round !== this.round) return; // a newer refresh is running
      const policies: Policies = { terminal: terminal.policy, tool: tool.policy };
      this.on = { terminal: terminal.policy.restricted, tool: tool.policy.restricted };
      const { initializeResult } = state;
      const summary = summarize(initializeResult, policies);
      // The walkthrough's first step is done when this is so.
      const on = summary === "full" || summary === "degraded";
      void vscode.commands.executeCommand("setContext", "sandboxSidecar.on", on);
      this.show(wanted(summary, policies), undefined, {
        name: folder.name,
        summary,
        policies,
        missing: missing(initializeResult.capabilities.enforcement, policies),
      });
    } catch (error) {
      if (round !== this.round) return;
      this.on = undefined; // nothing is known
      this.show(failed(vscode.l10n.t("error")), describe(error));
    }
  }

  private showNotRunning(state: Exclude<State, { is: "running" }>): void {
    switch (state.is) {
      case "idle":
        return this.show(
          { icon: "shield", word: undefined },
          // Nobody has read them: no sidecar runs before it is needed.
          vscode.workspace.isTrusted
            ? vscode.l10n.t("Your settings say whether it is on. The first terminal or tool reads them.")
            : vscode.l10n.t("This workspace is not trusted: a terminal opens only if it is sandboxed."),
        );
      case "starting":
        return this.show(
          { icon: "loading~spin", word: vscode.l10n.t("starting") },
          vscode.l10n.t("The sandbox sidecar is starting."),
        );
      case "waiting":
        return this.show(failed(vscode.l10n.t("restarting")), state.reason);
      case "failed":
        return this.show(failed(vscode.l10n.t("error")), state.reason);
    }
  }

  /** Shows what is so; if nothing is known of it, what the settings want. */
  private show(settings: Shown, note?: string, folder?: Folder): void {
    const { confined, total, active } = this.counter.count;
    const shown = settings.severity === "error" ? settings : (this.fact(folder) ?? settings);
    const counted =
      total === 0
        ? undefined
        : active === "open"
          ? total === 1
            ? vscode.l10n.t("{0} of 1 terminal, not this one", confined)
            : vscode.l10n.t("{0} of {1} terminals, not this one", confined, total)
          : total === 1
            ? vscode.l10n.t("{0} of 1 terminal", confined)
            : vscode.l10n.t("{0} of {1} terminals", confined, total);
    const state = [shown.word, counted].filter((part) => part !== undefined).join(", ");
    const text = state === "" ? vscode.l10n.t("Sandbox") : vscode.l10n.t("Sandbox: {0}", state);
    // Who wants all of them confined is warned of others.
    const severity = shown.severity ?? (confined < total && this.confine.active ? "warning" : undefined);
    const front = this.front(folder);
    const lines = [
      note === undefined ? undefined : escapeMarkdown(note),
      front,
      total === 0 ? undefined : vscode.l10n.t("Sandboxed terminals in this window: {0} of {1}.", confined, total),
      folder === undefined ? undefined : ofNew(folder, front === undefined),
    ].filter((line) => line !== undefined);
    // Names in the lines are escaped. A link can run only these commands.
    const markdown = new vscode.MarkdownString(`${lines.slice(0, 3).join("\n\n")}\n\n${links()}`);
    markdown.isTrusted = { enabledCommands: linked.map(commandOf) };
    this.item.text = `$(${shown.icon}) ${text}`;
    this.item.tooltip = markdown;
    this.item.backgroundColor =
      severity === undefined ? undefined : new vscode.ThemeColor(`statusBarItem.${severity}Background`);
    this.item.accessibilityInformation = { label: text, role: "button" };
  }

  /** Returns what is known of the terminal in front; undefined if nothing is. */
  private fact(folder: Folder | undefined): Shown | undefined {
    const { active } = this.counter.count;
    const report = this.terminals.of(vscode.window.activeTerminal)?.spawned?.sandbox;
    if (report?.status === "none") return failed(vscode.l10n.t("not enforced"));
    if (active === "open") return { icon: "circle-slash", word: undefined };
    if (active !== "confined") return undefined;
    // The shield is the terminal's. What opens beside it has none.
    if (folder !== undefined && !folder.policies.terminal.restricted)
      return { icon: "shield", word: vscode.l10n.t("off for new terminals"), severity: "warning" };
    return this.lacking(folder).length > 0
      ? { icon: "warning", word: vscode.l10n.t("partly"), severity: "warning" }
      : { icon: "shield", word: undefined };
  }

  /**
   * Returns the protections that the terminal in front lacks. One whose shell is
   * a link to the sidecar lacks what the machine does.
   */
  private lacking(folder: Folder | undefined): string[] {
    const pty = this.terminals.of(vscode.window.activeTerminal);
    const report = pty?.spawned?.sandbox;
    if (report === undefined) return folder?.missing ?? [];
    return report.status === "degraded" ? unenforced(report.protections) : [];
  }

  /** Describes the terminal in front; undefined if nothing is known of it. */
  private front(folder: Folder | undefined): string | undefined {
    const { active } = this.counter.count;
    if (active !== "open" && active !== "confined") return undefined;
    const lacking = this.lacking(folder);
    const state =
      active === "open"
        ? vscode.l10n.t("This terminal is **not** sandboxed.")
        : lacking.length > 0
          ? vscode.l10n.t("This terminal is **partly** sandboxed. Not fully: {0}.", named(lacking))
          : vscode.l10n.t("This terminal is sandboxed.");
    const stale = this.terminals.of(vscode.window.activeTerminal)?.stale === true;
    return stale ? `${state} ${vscode.l10n.t("It uses old settings.")}` : state;
  }
}

function failed(word: string): Shown {
  return { icon: "error", word, severity: "error" };
}

/** What the settings want of new sessions. */
function wanted(summary: Summary, { terminal, tool }: Policies): Shown {
  switch (summary) {
    case "off":
      return { icon: "circle-slash", word: vscode.l10n.t("off") };
    case "none":
      return failed(vscode.l10n.t("not enforced"));
    case "degraded":
      return { icon: "warning", word: vscode.l10n.t("partly"), severity: "warning" };
    case "full":
      if (terminal.restricted && tool.restricted) return { icon: "shield", word: vscode.l10n.t("on") };
      return tool.restricted
        ? { icon: "shield", word: vscode.l10n.t("tools only") }
        : { icon: "shield", word: vscode.l10n.t("terminals only") };
  }
}

/** Says in one line what new sessions get, and perhaps what they lack. */
function ofNew({ name, summary, policies, missing }: Folder, withMissing: boolean): string {
  const folder = escapeMarkdown(quote(name, 30));
  if (summary === "none") return vscode.l10n.t("This machine cannot sandbox anything. Doctor says why.");
  if (summary === "off" && vscode.workspace.isTrusted) return vscode.l10n.t("New terminals and tools in {0} are **not** sandboxed.", folder);
  const { terminal, tool } = policies;
  // Agents have no tool there.
  if (!vscode.workspace.isTrusted && !terminal.restricted)
    return vscode.l10n.t("Not sandboxed and not trusted: no new terminal opens in {0}.", folder);
  const partly = withMissing && missing.length > 0 ? ` ${vscode.l10n.t("Not fully: {0}.", named(missing))}` : "";
  if (!vscode.workspace.isTrusted)
    return vscode.l10n.t("New terminals in {0} are sandboxed. The workspace is not trusted.", folder) + partly;
  if (terminal.restricted && tool.restricted)
    return vscode.l10n.t("New terminals and tools in {0} are sandboxed.", folder) + partly;
  return tool.restricted
    ? vscode.l10n.t("New tools in {0} are sandboxed, terminals are **not**.", folder) + partly
    : vscode.l10n.t("New terminals in {0} are sandboxed, tools are **not**.", folder) + partly;
}

/** Names a few protections; the doctor has them all. */
function named(protections: string[]): string {
  const names = protections.slice(0, 2).map((name) => escapeMarkdown(name.replaceAll("_", " ")));
  return names.join(", ") + (protections.length > names.length ? ", …" : "");
}

function commandOf(name: (typeof linked)[number]): string {
  return `sandboxSidecar.${name}`;
}

function links(): string {
  const labels = {
    showPolicy: vscode.l10n.t("Policy"),
    openUserSettings: vscode.l10n.t("Settings"),
    doctor: vscode.l10n.t("Doctor"),
    showStatus: vscode.l10n.t("All Commands"),
  };
  return linked.map((name) => `[${labels[name]}](command:${commandOf(name)})`).join(" | ");
}
