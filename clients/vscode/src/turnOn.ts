import * as vscode from "vscode";

import { configuration } from "./configuration";
import { line } from "./display";
import { describe } from "./errors";
import { currentFolder } from "./folders";
import { initArguments, runInit, undecided, type ApplyTo } from "./initialize";
import type { Manager } from "./manager";
import { turnedOff, turnedOn, withMode, type Mode } from "./modes";
import { inform, warn } from "./notices";
import { PolicyGetRequest, SettingsGetRequest } from "./protocol.gen";
import { settingOf } from "./settingsEdit";
import { editSettings, platformBlock, userSettings } from "./settingsFiles";
import type { Stale } from "./stale";

/** Where the editor remembers, for all windows, that the user was asked. */
const asked = "askedToTurnOn";

/** How often, and after how many milliseconds, the new settings are looked for. */
const tries = 20;
const pause = 250;

/** Turns the sandbox on, which is off until the user says otherwise, and off. */
export class TurnOn {
  /** A question is open, so that no second one is asked. */
  private asking = false;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly manager: Manager,
    private readonly log: vscode.LogOutputChannel,
    private readonly stale: Stale,
  ) {
    context.subscriptions.push(
      manager.onDidChange((state) => {
        if (state.is === "running") void this.offer().catch((error: unknown) => log.error(describe(error)));
      }),
    );
  }

  /** Asks once per user, if no settings file says whether the sandbox is on. */
  private async offer(): Promise<void> {
    if (this.asking || this.context.globalState.get(asked) === true) return;
    if (!undecided((await this.settings()).origins) || this.asked()) return;
    await this.context.globalState.update(asked, true);
    await this.run(await this.ask(vscode.l10n.t("The sandbox is off. Turn it on for:")), true);
  }

  /** Whether a question has been opened meanwhile. */
  private asked(): boolean {
    return this.asking;
  }

  /**
   * Reports whether a terminal may open: if the settings do not sandbox it, the
   * user decides.
   */
  async ensure(projectDir = currentFolder()?.uri.fsPath): Promise<boolean> {
    if (projectDir === undefined || !vscode.workspace.isTrusted) return true; // whoever opens it reports that
    this.asking = true;
    try {
      const { policy } = await this.manager.request(PolicyGetRequest, { projectDir, kind: "terminal" });
      if (policy.restricted) return true;
      await this.context.globalState.update(asked, true);
      const [on, open] = [vscode.l10n.t("Turn On"), vscode.l10n.t("Open Unsandboxed")];
      const choice = await vscode.window.showWarningMessage(
        vscode.l10n.t("Terminals are not sandboxed. Turn the sandbox on first?"),
        { modal: true, detail: vscode.l10n.t("Your settings are changed. You can turn it off again.") },
        on,
        open,
      );
      if (choice !== on) return choice === open;
      await this.run("both");
      // Another setting may override that.
      return await this.becomes(projectDir, { terminal: true });
    } finally {
      this.asking = false;
    }
  }

  /** Turns it on for what the argument says; without one, asks. */
  async run(applyTo?: ApplyTo, wasAsked = false): Promise<void> {
    const chosen = applyTo ?? (wasAsked ? undefined : await this.ask(vscode.l10n.t("Turn the sandbox on for:")));
    if (chosen === undefined) return;
    const { settings, origins } = await this.settings();
    this.stale.expectChange();
    if (undecided(origins)) {
      const args = initArguments(chosen, configuration().settingsPath);
      const output = await runInit(await this.manager.program(), args);
      for (const text of output.trimEnd().split("\n")) this.log.info(line(text));
    } else {
      const mode = settingOf(settings, "mode");
      await editSettings(userSettings(), (text) => turnedOn(text, platformBlock(), chosen, mode));
    }
    await this.tell(
      { terminal: chosen !== "tool", tool: chosen !== "terminal" },
      vscode.l10n.t("The sandbox is on. It applies to new terminals and tools."),
    );
  }

  /** Asks, and turns it off. */
  async turnOff(): Promise<void> {
    const off = vscode.l10n.t("Turn Off");
    const choice = await vscode.window.showWarningMessage(
      vscode.l10n.t("Turn the sandbox off?"),
      { modal: true, detail: vscode.l10n.t("New terminals and agents' commands then get all your rights.") },
      off,
    );
    if (choice !== off) return;
    this.stale.expectChange();
    await editSettings(userSettings(), (text) => turnedOff(text, platformBlock()));
    await this.tell(
      { terminal: false, tool: false },
      vscode.l10n.t("The sandbox is off for new terminals and tools. Open ones stay as they are."),
    );
  }

  /** Asks for a mode, and writes it into the user's settings. */
  async chooseMode(): Promise<void> {
    const now = settingOf((await this.settings()).settings, "mode");
    const all: (vscode.QuickPickItem & { mode: Mode })[] = [
      { label: "strict", detail: vscode.l10n.t("No network. Only the project and the system's programs."), mode: "strict" },
      { label: "standard", detail: vscode.l10n.t("The network, and what your settings add."), mode: "standard" },
      {
        label: "relaxed",
        detail: vscode.l10n.t("The whole disk may be read, except hidden paths. The network is on."),
        mode: "relaxed",
      },
      { label: "off", detail: vscode.l10n.t("Nothing is sandboxed."), mode: "off" },
    ];
    const items = all.map((item) => (item.mode === now ? { ...item, description: vscode.l10n.t("now") } : item));
    const chosen = await vscode.window.showQuickPick(items, {
      title: vscode.l10n.t("How much may new sessions do?"),
      placeHolder: vscode.l10n.t("Other keys in your settings still override the mode."),
    });
    if (chosen === undefined) return;
    if (chosen.mode === "off") return this.turnOff();
    this.stale.expectChange();
    await editSettings(userSettings(), (text) => withMode(text, platformBlock(), chosen.mode));
    await this.tell(undefined, vscode.l10n.t("The mode is {0} for new terminals and tools.", chosen.mode));
  }

  private async settings(): Promise<{ settings: unknown; origins: Record<string, string> }> {
    const folder = currentFolder();
    return this.manager.request(SettingsGetRequest, folder === undefined ? {} : { projectDir: folder.uri.fsPath });
  }

  /** Tells what was done, once the sidecar confirms it. */
  private async tell(wanted: { terminal: boolean; tool: boolean } | undefined, message: string): Promise<void> {
    if (await this.holds(wanted)) return void this.stale.tellWritten(message);
    const open = vscode.l10n.t("Open User Settings");
    void warn(
      vscode.l10n.t("Your settings were written, but another one overrides them. See Show Policy."),
      open,
    ).then((choice) =>
      choice === open ? vscode.commands.executeCommand("sandboxSidecar.openUserSettings") : undefined,
    );
  }

  /** Waits until new sessions are sandboxed as wanted, or it is too late. */
  private async holds(wanted: { terminal: boolean; tool: boolean } | undefined): Promise<boolean> {
    const folder = currentFolder();
    return folder === undefined || wanted === undefined || this.becomes(folder.uri.fsPath, wanted);
  }

  /** Waits until new sessions of a project are sandboxed as wanted, or it is too late. */
  private async becomes(projectDir: string, wanted: { terminal: boolean; tool?: boolean }): Promise<boolean> {
    const restricted = async (kind: "terminal" | "tool") =>
      (await this.manager.request(PolicyGetRequest, { projectDir, kind })).policy.restricted;
    for (let i = 0; i < tries; i++) {
      const tool = wanted.tool === undefined || (await restricted("tool")) === wanted.tool;
      if (tool && (await restricted("terminal")) === wanted.terminal) return true;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    return false;
  }

  private async ask(question: string): Promise<ApplyTo | undefined> {
    const both = vscode.l10n.t("Terminals and Tools");
    const tools = vscode.l10n.t("Tools Only");
    const choice = await inform(
      question,
      both,
      tools,
      vscode.l10n.t("Not Now"),
    );
    return choice === both ? "both" : choice === tools ? "tool" : undefined;
  }
}
