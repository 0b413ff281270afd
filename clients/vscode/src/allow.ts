import { homedir } from "node:os";

import * as vscode from "vscode";

import { valueOf, withHint } from "./denialText";
import { quote } from "./display";
import { folderQuestion, folderSuggestion } from "./folderOf";
import { currentFolder } from "./folders";
import { fromHome } from "./home";
import type { Manager } from "./manager";
import { PolicyExplainRequest, SettingsAllowRequest, SettingsGetRequest, type Suggestion } from "./protocol.gen";
import { editSettings, platformBlock, projectSettings, userSettings } from "./settingsFiles";
import { settingOf, withSetting, withSuggestion } from "./settingsEdit";
import type { Stale } from "./stale";
import type { Trust } from "./trust";

/** The lists to which the sidecar adds for a window. */
const grantable = /^(\w+\.)?(additional_\w+|toolchains|allowed_hosts)$/;

/** Where a suggestion can go. */
type Choice = vscode.QuickPickItem & { write?: () => Promise<void> };

/**
 * Writes the setting that would allow a denied operation, into the file that
 * the user chooses.
 */
export class Allow {
  constructor(
    private readonly manager: Manager,
    private readonly trust: Trust,
    private readonly stale: Stale,
  ) {}

  /**
   * Asks into which file the suggestion goes, and writes it. Without projectDir
   * the current folder is the project. A session that the sidecar did not start
   * reads the settings itself, so nothing can be allowed for the window there.
   */
  async ask(
    title: string,
    suggestion: Suggestion,
    hint: string | undefined,
    projectDir: string | undefined,
    external: boolean,
  ): Promise<void> {
    const project = projectDir ?? currentFolder()?.uri.fsPath;
    // The risk stands beside what takes it.
    const detail = withHint("", hint).trim();
    const items = this.choices(suggestion, detail, project, external);
    const folder = project === undefined ? undefined : await this.folderOf(suggestion, project);
    if (folder !== undefined) {
      const kind = vscode.QuickPickItemKind.Separator;
      items.unshift({ label: valueOf(suggestion), kind });
      // Without the separators, as after a word was typed, its rows must differ.
      const description = vscode.l10n.t("its folder: {0}", valueOf(folder));
      items.push({ label: description, kind });
      items.push(...this.choices(folder, "", project, external).map((one) => ({ ...one, description })));
    }
    const placeHolder = `"${suggestion.setting}": ${valueOf(suggestion)}`;
    const chosen = await vscode.window.showQuickPick(items, { title, placeHolder });
    await chosen?.write?.();
  }

  /**
   * Returns the suggestion for the folder of what was refused, so that not each
   * file of it is asked about; undefined if the sidecar would not make that one.
   */
  private async folderOf(suggestion: Suggestion, projectDir: string): Promise<Suggestion | undefined> {
    const question = folderQuestion(suggestion, homedir());
    if (question === undefined) return undefined;
    const kind = suggestion.setting.startsWith("tool.") ? "tool" : "terminal";
    try {
      const answer = await this.manager.request(PolicyExplainRequest, { projectDir, kind, ...question });
      return folderSuggestion(suggestion, question, answer, homedir());
    } catch {
      return undefined; // the file itself can be allowed all the same
    }
  }

  private choices(suggestion: Suggestion, detail: string, project: string | undefined, external: boolean): Choice[] {
    const items: Choice[] = [
      {
        label: vscode.l10n.t("$(account) For all my projects"),
        description: vscode.l10n.t("in your user settings"),
        detail,
        write: () => this.writeUser(suggestion),
      },
    ];
    if (project !== undefined && vscode.workspace.isTrusted) {
      items.push({
        label: vscode.l10n.t("$(folder) For this project"),
        description: vscode.l10n.t("in its .zed/settings.json, which you then trust"),
        detail,
        write: () => this.writeProject(project, suggestion),
      });
    }
    if (project !== undefined && !external && grantable.test(suggestion.setting)) {
      items.push({
        label: vscode.l10n.t("$(window) Until this window closes"),
        description: vscode.l10n.t("in this project's new terminals and tools; nothing is written"),
        detail,
        write: () => this.forWindow(project, suggestion),
      });
    }
    return items;
  }

  /** Nothing is written. The sidecar remembers it until it ends. */
  private async forWindow(projectDir: string, suggestion: Suggestion): Promise<void> {
    this.stale.expectChange();
    await this.manager.request(SettingsAllowRequest, { projectDir, scope: "window", suggestion });
    void this.stale.tellWritten(vscode.l10n.t("Allowed in new terminals and tools until this window closes."));
  }

  private async writeUser(suggestion: Suggestion): Promise<void> {
    const { settings, origins } = await this.manager.request(SettingsGetRequest, { kind: "terminal" });
    // A list replaces the list of a lower layer, so the entry goes into the
    // file that defines the list.
    const origin = origins[suggestion.setting];
    const file = origin?.startsWith("/") === true ? origin : userSettings();
    await this.write(file, suggestion, settings);
    const written = vscode.l10n.t("The setting was written to {0}. It applies to new terminals.", quote(fromHome(file), 41));
    void this.stale.tellWritten(written);
  }

  private async writeProject(projectDir: string, suggestion: Suggestion): Promise<void> {
    const { settings } = await this.manager.request(SettingsGetRequest, { projectDir, kind: "terminal" });
    await this.write(projectSettings(projectDir), suggestion, settings);
    await this.trust.askFor(projectDir); // a project's settings apply only after it is trusted
  }

  private async write(file: string, suggestion: Suggestion, settings: unknown): Promise<void> {
    const value = withSuggestion(settingOf(settings, suggestion.setting), suggestion.value);
    this.stale.expectChange();
    await editSettings(file, (text) => withSetting(text, platformBlock(), suggestion.setting, value));
  }
}
