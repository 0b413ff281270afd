import * as vscode from "vscode";

import type { Confine } from "./confine";
import type { Counter } from "./count";
import { quote } from "./display";
import { describe } from "./errors";
import { currentFolder } from "./folders";
import type { Manager, State } from "./manager";
import { PolicyGetRequest, SettingsChangedNotification, type Protection, type Protections } from "./protocol.gen";
import { escapeMarkdown, summarize, type Policies, type Summary } from "./summary";
import type { Terminals } from "./terminals";

const marks: Record<Protection["status"], string> = {
  enforced: "$(pass-filled)",
  degraded: "$(warning)",
  absent: "$(circle-slash)",
};

/** The status bar item; its hover explains each protection. */
export class Status {
  private readonly item = vscode.window.createStatusBarItem(
    "sandboxSidecar.status",
    vscode.StatusBarAlignment.Left,
    90,
  );
  private round = 0;

  constructor(
    context: vscode.ExtensionContext,
    private readonly manager: Manager,
    private readonly terminals: Terminals,
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
    );
    refresh();
  }

  private async refresh(): Promise<void> {
    const round = ++this.round;
    const { state } = this.manager;
    if (state.is !== "running") {
      this.showNotRunning(state);
      return;
    }
    const folder = currentFolder();
    if (folder === undefined) {
      this.show(
        "shield",
        vscode.l10n.t("Sandbox: no folder"),
        undefined,
        this.protections(state.initializeResult.capabilities.enforcement),
      );
      return;
    }
    const projectDir = folder.uri.fsPath;
    try {
      const [terminal, tool] = await Promise.all([
        this.manager.request(PolicyGetRequest, { projectDir, kind: "terminal" }),
        this.manager.request(PolicyGetRequest, { projectDir, kind: "tool" }),
      ]);
      if (round !== this.round) return; // a newer refresh is running
      const policies: Policies = { terminal: terminal.policy, tool: tool.policy };
      this.showSummary(
        summarize(state.initializeResult, policies),
        policies,
        folder,
        state.initializeResult.capabilities.enforcement,
      );
    } catch (error) {
      if (round === this.round)
        this.show("error", vscode.l10n.t("Sandbox: error"), "error", escapeMarkdown(describe(error)));
    }
  }

  private showNotRunning(state: Exclude<State, { is: "running" }>): void {
    switch (state.is) {
      case "idle":
        return this.show(
          "shield",
          vscode.l10n.t("Sandbox"),
          undefined,
          vscode.l10n.t("The sandbox starts with the first terminal or tool."),
        );
      case "starting":
        return this.show(
          "loading~spin",
          vscode.l10n.t("Sandbox: starting"),
          undefined,
          vscode.l10n.t("The sandbox sidecar is starting."),
        );
      case "waiting":
        return this.show("error", vscode.l10n.t("Sandbox: restarting"), "error", escapeMarkdown(state.reason));
      case "failed":
        return this.show("error", vscode.l10n.t("Sandbox: error"), "error", escapeMarkdown(state.reason));
    }
  }

  private showSummary(
    summary: Summary,
    policies: Policies,
    folder: vscode.WorkspaceFolder,
    enforcement: Protections,
  ): void {
    const both = policies.terminal.restricted && policies.tool.restricted;
    const scope = both
      ? vscode.l10n.t("Terminals and tools in **{0}** are sandboxed.", escapeMarkdown(quote(folder.name)))
      : policies.terminal.restricted
        ? vscode.l10n.t("Terminals in **{0}** are sandboxed, tools are not.", escapeMarkdown(quote(folder.name)))
        : policies.tool.restricted
          ? vscode.l10n.t("Tools in **{0}** are sandboxed, terminals are not.", escapeMarkdown(quote(folder.name)))
          : vscode.l10n.t(
              "Nothing in **{0}** is sandboxed, because no settings file turns the sandbox on.",
              escapeMarkdown(quote(folder.name)),
            );
    const hover = `${scope}\n\n${this.terminal()}${this.protections(enforcement)}`;
    switch (summary) {
      case "full":
        return this.show("shield", vscode.l10n.t("Sandbox: full"), undefined, hover);
      case "degraded":
        return this.show("warning", vscode.l10n.t("Sandbox: degraded"), "warning", hover);
      case "none":
        return this.show("error", vscode.l10n.t("Sandbox: not enforced"), "error", hover);
      case "off":
        return this.show("circle-slash", vscode.l10n.t("Sandbox: off"), undefined, hover);
    }
  }

  /** Describes the active terminal's sandbox. */
  private terminal(): string {
    const pty = this.terminals.of(vscode.window.activeTerminal);
    const report = pty?.spawned?.sandbox;
    if (pty === undefined || report === undefined) return "";
    const stale = pty.stale ? ` ${vscode.l10n.t("It uses old settings.")}` : "";
    // Reporting denials protects nothing by itself. A protection without a
    // mechanism was not requested, so it is not missing.
    const less = Object.entries(report.protections)
      .filter(([name, { status, mechanism }]) => status !== "enforced" && mechanism !== "" && name !== "denials")
      .map(([name, { detail }]) => `\n- ${escapeMarkdown(`${name.replaceAll("_", " ")}: ${withinFolders(detail)}`)}`);
    const why = report.status === "degraded" ? less.join("") : "";
    const warnings = report.warnings.map((warning) => `\n\n$(warning) ${escapeMarkdown(warning)}`).join("");
    return `${vscode.l10n.t("The active terminal's sandbox: **{0}**.", report.status)}${stale}${why}${warnings}\n\n`;
  }

  private protections(protections: Protections): string {
    const rows = Object.entries(protections).map(([name, { status, mechanism, detail, fix }]) => {
      const fixText = fix === undefined ? "" : ` — ${vscode.l10n.t("fix: {0}", escapeMarkdown(fix))}`;
      // An enforced protection is explained by its mechanism, any other by its
      // details.
      const why = status === "enforced" ? escapeMarkdown(mechanism) : escapeMarkdown(detail) + fixText;
      // Reports of denials protect nothing by themselves.
      const mark = name === "denials" && status !== "enforced" ? "$(info)" : marks[status];
      return `| ${mark}&nbsp;${escapeMarkdown(name.replaceAll("_", " "))} | ${status} | ${why} |`;
    });
    return [
      `| ${vscode.l10n.t("Protection")} | | ${vscode.l10n.t("What this machine enforces")} |`,
      "|---|---|---|",
      ...rows,
    ].join("\n");
  }

  /** Returns how many terminals are confined, for the bar and for its hover. */
  private counted(): { text: string; hover: string; less: boolean } {
    const { confined, total, active } = this.counter.count;
    if (total === 0) return { text: "", hover: "", less: false };
    const front = active === "open" ? ` ${vscode.l10n.t("The one in front is **not** sandboxed.")}` : "";
    return {
      text: `, ${
        active === "open"
          ? vscode.l10n.t("{0} of {1} terminals, not this one", confined, total)
          : vscode.l10n.t("{0} of {1} terminals", confined, total)
      }`,
      hover: `${vscode.l10n.t("{0} of {1} terminals in this window are sandboxed.", confined, total)}${front}\n\n`,
      less: confined < total,
    };
  }

  private show(icon: string, summary: string, severity: "warning" | "error" | undefined, hover: string): void {
    const count = this.counted();
    const text = summary + count.text;
    // Who wants all of them confined is warned of others.
    if (count.less && this.confine.active) severity ??= "warning";
    // The text contains escaped names and paths. The Markdown is not trusted
    // either, so no link can run a command.
    const more = vscode.l10n.t("Click for the policy, settings, doctor and log.");
    const markdown = new vscode.MarkdownString(`${count.hover}${hover}\n\n${more}`, true);
    this.item.text = `$(${icon}) ${text}`;
    this.item.tooltip = markdown;
    this.item.backgroundColor =
      severity === undefined ? undefined : new vscode.ThemeColor(`statusBarItem.${severity}Background`);
    this.item.accessibilityInformation = { label: text, role: "button" };
  }
}

/**
 * Shortens paths below an open folder: texts about protected paths contain many
 * of them.
 */
function withinFolders(text: string): string {
  return (vscode.workspace.workspaceFolders ?? []).reduce(
    (rest, folder) => rest.replaceAll(`${folder.uri.fsPath}/`, ""),
    text,
  );
}
