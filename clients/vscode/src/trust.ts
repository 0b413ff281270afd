import * as vscode from "vscode";

import { quote } from "./display";
import type { Documents } from "./document";
import { describe } from "./errors";
import { pickFolder } from "./folders";
import { fromHome } from "./home";
import type { Manager } from "./manager";
import { fail, inform, warn } from "./notices";
import { Page } from "./page";
import {
  ProjectStatusRequest,
  ProjectTrustRequest,
  ProjectUntrustRequest,
  SettingsChangedNotification,
  type Project,
} from "./protocol.gen";
import type { Stale } from "./stale";

/** The space for text in the question: rows, and columns of a row. */
const [rows, columns] = [18, 70];

/** Returns how many requests fit into the question; at least one. */
function countThatFits(asks: string[]): number {
  let left = rows;
  const over = asks.findIndex((ask) => (left -= Math.ceil(ask.length / columns)) < 0);
  return over < 0 ? asks.length : Math.max(1, over);
}

/**
 * Trust in a project's settings. Untrusted settings can only tighten the user's
 * own. The user sees every further request before the question, and trusts
 * exactly the content that was shown.
 */
export class Trust {
  private readonly notified = new Set<string>();

  constructor(
    context: vscode.ExtensionContext,
    private readonly manager: Manager,
    private readonly documents: Documents,
    private readonly stale: Stale,
  ) {
    manager.onNotification(SettingsChangedNotification, ({ projects }) =>
      projects.forEach((project) => this.notifyOnce(project)),
    );
    context.subscriptions.push(
      manager.onDidChange(({ is }) => {
        if (is === "running") void this.checkFolders();
      }),
      vscode.workspace.onDidChangeWorkspaceFolders(() => {
        if (this.manager.state.is === "running") void this.checkFolders();
      }),
    );
  }

  /** Checks the settings of every open folder, and reports their requests. */
  private async checkFolders(): Promise<void> {
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      try {
        this.notifyOnce(await this.manager.request(ProjectStatusRequest, { projectDir: folder.uri.fsPath }));
      } catch {
        return; // the sidecar or the folder is gone; whoever needs it reports that
      }
    }
  }

  /** Notifies the user once per content that requests more than it gets. */
  private notifyOnce(project: Project): void {
    if (!project.exists || project.trusted || project.asks.length === 0 || this.notified.has(project.digest)) return;
    this.notified.add(project.digest);
    void this.notify(project);
  }

  private async notify(project: Project): Promise<void> {
    const show = vscode.l10n.t("Show…");
    const buttons = vscode.workspace.isTrusted ? [show] : []; // trust in the workspace comes first
    if ((await warn(project.message, ...buttons)) === show)
      await this.askFor(project.projectDir);
  }

  /**
   * Shows what the project's settings request, and asks whether to trust them.
   */
  async ask(): Promise<void> {
    const folder = await pickFolder();
    if (folder !== undefined) await this.askFor(folder.uri.fsPath);
  }

  /**
   * Shows what the settings of a folder request, and asks whether to trust
   * them.
   */
  async askFor(projectDir: string): Promise<void> {
    const project = await this.manager.request(ProjectStatusRequest, { projectDir });
    const obstacle = obstacleTo(project);
    if (obstacle !== undefined) {
      void inform(obstacle);
      return;
    }
    const asks = project.asks.map(({ message }) => `• ${message}`);
    const more = asks.length - countThatFits(asks);
    const shown = more > 0 ? [...asks.slice(0, -more), vscode.l10n.t("… and {0} more: choose Show All.", more)] : asks;
    const detail =
      asks.length === 0 ? vscode.l10n.t("It asks for nothing beyond your own settings.") : shown.join("\n");
    const [no, all, view, trust] = [
      vscode.l10n.t("Don't Trust"),
      vscode.l10n.t("Show All"),
      vscode.l10n.t("View File"),
      vscode.l10n.t("Trust This Content"),
    ];
    const question = vscode.l10n.t("Trust {0}? It asks for:", quote(project.file));
    // The first button has the focus, so Enter does not trust.
    const choice = await vscode.window.showWarningMessage(
      question,
      { modal: true, detail },
      no,
      ...(more > 0 ? [all] : []),
      view,
      trust,
    );
    if (choice === view) await vscode.window.showTextDocument(vscode.Uri.file(project.file));
    if (choice === all) await this.showAll(project, asks);
    if (choice !== trust) return;
    try {
      this.stale.expectChange();
      await this.manager.request(ProjectTrustRequest, { projectDir, digest: project.digest });
      void this.stale.tellWritten(vscode.l10n.t("{0} is trusted.", quote(fromHome(project.file), 60)));
    } catch (error) {
      void fail(describe(error));
    }
  }

  /** Shows all requests, if the question has no space for them. */
  private async showAll(project: Project, asks: string[]): Promise<void> {
    const page = new Page().words(vscode.l10n.t("{0} asks for:", quote(project.file)), 0).line();
    for (const ask of asks) page.words(ask, 0);
    await this.documents.show(vscode.l10n.t("Sandbox Requests"), project.projectDir, () => Promise.resolve(page));
  }

  /** Withdraws the trust. */
  async withdraw(): Promise<void> {
    const folder = await pickFolder();
    if (folder === undefined) return;
    const project = await this.manager.request(ProjectUntrustRequest, { projectDir: folder.uri.fsPath });
    void inform(vscode.l10n.t("{0} is not trusted.", quote(fromHome(project.file), 60)));
  }
}

/** Returns why there is no question; undefined if there is one. */
function obstacleTo(project: Project): string | undefined {
  return !project.exists || project.problem !== undefined || project.trusted ? project.message : undefined;
}
