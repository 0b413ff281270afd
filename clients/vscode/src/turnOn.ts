import * as vscode from "vscode";

import { configuration } from "./configuration";
import { line } from "./display";
import { describe } from "./errors";
import { currentFolder } from "./folders";
import { initArguments, runInit, undecided, type ApplyTo } from "./initialize";
import type { Manager } from "./manager";
import { SettingsGetRequest } from "./protocol.gen";

/** Where the editor remembers, for all windows, that the user was asked. */
const asked = "askedToTurnOn";

/** Turns the sandbox on, which is off until the user says otherwise. */
export class TurnOn {
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly manager: Manager,
    private readonly log: vscode.LogOutputChannel,
  ) {
    context.subscriptions.push(
      manager.onDidChange((state) => {
        if (state.is === "running") void this.offer().catch((error: unknown) => log.error(describe(error)));
      }),
    );
  }

  /** Asks once per user, if no settings file says whether the sandbox is on. */
  private async offer(): Promise<void> {
    if (this.context.globalState.get(asked) === true) return;
    const folder = currentFolder();
    const params = folder === undefined ? {} : { projectDir: folder.uri.fsPath };
    const { origins } = await this.manager.request(SettingsGetRequest, params);
    if (!undecided(origins)) return;
    await this.context.globalState.update(asked, true);
    await this.run();
  }

  /** Turns it on for what the argument says; without one, asks. */
  async run(applyTo?: ApplyTo): Promise<void> {
    const chosen = applyTo ?? (await this.ask());
    if (chosen === undefined) return;
    const args = initArguments(chosen, configuration().settingsPath);
    const output = await runInit(await this.manager.program(), args);
    for (const text of output.trimEnd().split("\n")) this.log.info(line(text));
    const open = vscode.l10n.t("Open User Settings");
    void vscode.window
      .showInformationMessage(vscode.l10n.t("The sandbox is on. It applies to new terminals and tools."), open)
      .then((choice) => (choice === open ? vscode.commands.executeCommand("sandboxSidecar.openUserSettings") : undefined));
  }

  private async ask(): Promise<ApplyTo | undefined> {
    const both = vscode.l10n.t("Terminals and Tools");
    const tools = vscode.l10n.t("Tools Only");
    const choice = await vscode.window.showInformationMessage(
      vscode.l10n.t("The sandbox is off. Turn it on for:"),
      both,
      tools,
      vscode.l10n.t("Not Now"),
    );
    return choice === both ? "both" : choice === tools ? "tool" : undefined;
  }
}
