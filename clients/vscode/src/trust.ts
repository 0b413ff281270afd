import * as vscode from "vscode";

import { describe } from "./errors";
import { pickFolder } from "./folders";
import type { Manager } from "./manager";
import { ProjectStatusRequest, ProjectTrustRequest, ProjectUntrustRequest, SettingsChangedNotification, type Project } from "./protocol.gen";

/**
 * Trust in a project's settings. Untrusted, they can only tighten the user's own; what they ask for beyond that is shown before the user is
 * asked, and trusted is exactly the content that was shown.
 */
export class Trust {
  private readonly told = new Set<string>();

  constructor(
    context: vscode.ExtensionContext,
    private readonly manager: Manager,
  ) {
    manager.onNotification(SettingsChangedNotification, ({ projects }) => projects.forEach((project) => this.consider(project)));
    context.subscriptions.push(
      manager.onDidChange(({ is }) => {
        if (is === "running") void this.look();
      }),
      vscode.workspace.onDidChangeWorkspaceFolders(() => {
        if (this.manager.state.is === "running") void this.look();
      }),
    );
  }

  /** Looks at every open folder, and tells what its project asks for. */
  private async look(): Promise<void> {
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      try {
        this.consider(await this.manager.request(ProjectStatusRequest, { projectDir: folder.uri.fsPath }));
      } catch {
        return; // the sidecar is gone, or the folder; whoever needs them is told
      }
    }
  }

  /** Tells the user once of a content that asks for more than it gets. */
  private consider(project: Project): void {
    if (!project.exists || project.trusted || project.asks.length === 0 || this.told.has(project.digest)) return;
    this.told.add(project.digest);
    void this.tell(project);
  }

  private async tell(project: Project): Promise<void> {
    const show = vscode.l10n.t("Show…");
    const message = vscode.l10n.t("{0} asks for more than your sandbox settings allow, and gets none of it.", project.file);
    const buttons = vscode.workspace.isTrusted ? [show] : []; // trust in the workspace comes first
    if ((await vscode.window.showWarningMessage(message, ...buttons)) === show) await this.askFor(project.projectDir);
  }

  /** Shows what a project asks for, and asks the user. */
  async ask(): Promise<void> {
    const folder = await pickFolder();
    if (folder !== undefined) await this.askFor(folder.uri.fsPath);
  }

  /** Shows what a folder's project asks for, and asks the user. */
  async askFor(projectDir: string): Promise<void> {
    const project = await this.manager.request(ProjectStatusRequest, { projectDir });
    const obstacle = obstacleTo(project);
    if (obstacle !== undefined) {
      void vscode.window.showInformationMessage(obstacle);
      return;
    }
    const asks = project.asks.map(({ line, key, value, opens }) => vscode.l10n.t("line {0}, {1} {2}: {3}", line, key, value, opens));
    const detail = asks.length === 0 ? vscode.l10n.t("It asks for nothing that your own settings do not allow.") : asks.join("\n");
    const [trust, view] = [vscode.l10n.t("Trust This Content"), vscode.l10n.t("View File")];
    const question = vscode.l10n.t("Trust {0}? It asks for:", project.file);
    const choice = await vscode.window.showWarningMessage(question, { modal: true, detail }, trust, view);
    if (choice === view) await vscode.window.showTextDocument(vscode.Uri.file(project.file));
    if (choice !== trust) return;
    try {
      await this.manager.request(ProjectTrustRequest, { projectDir, digest: project.digest });
      void vscode.window.showInformationMessage(vscode.l10n.t("{0} is trusted.", project.file));
    } catch (error) {
      void vscode.window.showErrorMessage(describe(error));
    }
  }

  /** Takes the trust back. */
  async withdraw(): Promise<void> {
    const folder = await pickFolder();
    if (folder === undefined) return;
    const project = await this.manager.request(ProjectUntrustRequest, { projectDir: folder.uri.fsPath });
    void vscode.window.showInformationMessage(vscode.l10n.t("{0} is not trusted.", project.file));
  }
}

/** Why there is nothing to ask. */
function obstacleTo(project: Project): string | undefined {
  if (!project.exists) return vscode.l10n.t("There is no {0}.", project.file);
  if (project.problem !== undefined) return vscode.l10n.t("{0} cannot be trusted: {1}", project.file, project.problem);
  if (project.trusted) return vscode.l10n.t("{0} is trusted already.", project.file);
  return undefined;
}
