import * as vscode from "vscode";

import { holds, offerToTurnOn, synced, target } from "./confine";
import { ignored, keptHere, systemName, undo, write, type Change } from "./confinement";
import { describe } from "./errors";
import type { Manager } from "./manager";
import { fail, inform, warn } from "./notices";
import { profileTitle } from "./profileTitle";
import { isDefault } from "./terminals";

/** Where the editor keeps what was written, to take it back. */
const record = "defaultProfile";

/**
 * Makes the sandboxed terminal the one that "+" and VS Code's own split open.
 * The user decides so: an extension cannot, and should not.
 */
export class DefaultProfile {
  /** The user's settings that Confine All has written. */
  others: () => string[] = () => [];

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly manager: Manager,
    private readonly turnOn: () => Promise<void>,
  ) {}

  /** Writes the user's setting. */
  async make(): Promise<void> {
    const system = systemName(process.platform);
    const key = `terminal.integrated.defaultProfile.${system}`;
    const settings = target("user");
    const before = settings.get(key);
    const known = this.known;
    if (before === profileTitle && isDefault()) {
      void inform(vscode.l10n.t("Sandboxed terminals are the default already."));
      return;
    }
    const change: Change = before === undefined ? { key, after: profileTitle } : { key, before, after: profileTitle };
    // Kept first: the window may close in between.
    const kept = keptHere(settings, [key], known.find((one) => one.key === ignored));
    const changes = kept === undefined ? [change] : [change, kept];
    await this.keep(changes);
    const { written, failed } = await write(settings, changes);
    const failure = failed.find((one) => one.key === key);
    if (failure !== undefined) {
      await undo(settings, written, this.others());
      await this.keep(known);
      void fail(describe(failure.error));
      return;
    }
    await this.keep(written);
    if (failed.length > 0) void warn(synced());
    if (isDefault()) {
      const back = vscode.l10n.t("Undo");
      void inform(vscode.l10n.t("New and split terminals are sandboxed ones by default."), back).then((choice) =>
        choice === back ? vscode.commands.executeCommand("sandboxSidecar.undoDefault") : undefined,
      );
    } else {
      const other = holds(key, profileTitle) ? `terminal.integrated.profiles.${system}` : key;
      void warn(vscode.l10n.t("Written, but another setting counts: {0}.", other));
    }
    await offerToTurnOn(this.manager, this.turnOn);
  }

  /** Takes back what was written, unless the user has changed it since. */
  async undo(): Promise<void> {
    const { changed, failed } = await undo(target("user"), this.known, this.others());
    const [failure] = failed;
    if (failure !== undefined) {
      void fail(describe(failure.error));
      return;
    }
    const nothing = this.known.length === 0 || changed.length > 0;
    await this.keep([]);
    void inform(
      nothing
        ? vscode.l10n.t("This command has not set the default terminal, so nothing changes.")
        : vscode.l10n.t("The default terminal is as before."),
    );
  }

  /** The settings that were written. */
  get keys(): string[] {
    return this.known.map(({ key }) => key);
  }

  /** Reports whether the setting was written, and not taken back. */
  get active(): boolean {
    return this.known.length > 0;
  }

  private get known(): Change[] {
    return this.context.globalState.get<Change[]>(record) ?? [];
  }

  private async keep(changes: Change[]): Promise<void> {
    await this.context.globalState.update(record, changes.length > 0 ? changes : undefined);
  }
}
