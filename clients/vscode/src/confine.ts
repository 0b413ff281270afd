import { realpath } from "node:fs/promises";
import * as path from "node:path";

import * as vscode from "vscode";

import { configuration } from "./configuration";
import { equal, ignored, keptHere, plan, shown, systemName, undo, write, type Change, type Failure, type Shell, type Target } from "./confinement";
import { json, line, quote } from "./display";
import { describe } from "./errors";
import { currentFolder } from "./folders";
import { fromHome } from "./home";
import type { Manager } from "./manager";
import { fail, inform, warn } from "./notices";
import { PolicyGetRequest } from "./protocol.gen";
import { leadTo, linkedShells, linkFor, linksDirectory, makeLinks, missingOf } from "./shellLinks";

/** Whose settings are written. */
export const scopes = ["user", "workspace"] as const;
export type Scope = (typeof scopes)[number];

/** Where the editor keeps what was written, to take it back. */
const record = "confined";

/** Makes every terminal, task and agent's terminal use the sandbox shell. */
export class Confine {
  private readonly changed = new vscode.EventEmitter<void>();
  /** Fires when settings were written or taken back. */
  readonly onDidChange = this.changed.event;

  /** The user's settings that the command for the default profile has written. */
  others: () => string[] = () => [];

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly manager: Manager,
    private readonly log: vscode.LogOutputChannel,
    private readonly turnOn: () => Promise<void>,
  ) {
    context.subscriptions.push(this.changed);
  }

  /** The user's settings that were written. */
  get keys(): string[] {
    return this.known("user").map(({ key }) => key);
  }

  /** Reports whether the settings were written, and not taken back. */
  get active(): boolean {
    return scopes.some((scope) => this.known(scope).length > 0);
  }

  /**
   * Makes the links again if they lead elsewhere, as after an update of the
   * extension, and warns of settings whose shell does not exist: in its place
   * VS Code starts a plain one, in silence. Such settings may have come from
   * another machine, so what counts is what they say.
   */
  async refresh(): Promise<void> {
    const directory = linksDirectory(process.env);
    const wanted = linkedShells(usedShells(), directory);
    if (directory !== undefined && (this.active || wanted.some((shell) => path.dirname(shell) === directory))) {
      const program = await this.manager.program();
      if (!(await leadTo(directory, program))) await makeLinks(program, directory);
    }
    const missing = await missingOf(wanted);
    if (missing !== undefined) void this.warnOf(missing);
  }

  /** Warns until the shell is there, or the user wants another one. */
  private async warnOf(missing: string): Promise<void> {
    const active = this.wrote(missing);
    const [again, undo] = [
      vscode.l10n.t("Check Again"),
      active ? vscode.l10n.t("Undo") : vscode.l10n.t("Open Settings"),
    ];
    const text = vscode.l10n.t("Terminals are not confined: {0} is missing.", quote(fromHome(missing), 48));
    const choice = await fail(text, again, undo);
    try {
      if (choice === undo && active) await this.undo();
      else if (choice === undo)
        await vscode.commands.executeCommand("workbench.action.openSettings", "terminal.integrated profile");
      if (choice === again) await this.refresh();
    } catch (error) {
      void this.manager.showFailure(error);
    }
  }

  /** Writes the settings of a scope, or asks whose. */
  async run(scope?: Scope): Promise<void> {
    const directory = linksDirectory(process.env);
    if (directory === undefined) throw new Error(vscode.l10n.t("HOME is not set, so there is no place for the shells."));
    if (configuration().settingsPath !== "") {
      throw new Error(vscode.l10n.t('Shells do not know the setting "sandboxSidecar.settingsPath". Unset it first.'));
    }
    const program = await this.manager.program();
    await makeLinks(program, directory);
    const shell = await usersShell(directory);
    const system = systemName(process.platform);
    const chosen = scope ?? (await ask(listed(shown(target("user"), system, shell))));
    if (chosen === undefined) return;
    if (chosen === "workspace" && !vscode.workspace.isTrusted) {
      // VS Code ignores these settings there.
      throw new Error(vscode.l10n.t("This workspace is not trusted, so its settings confine nothing. Use your own."));
    }
    const to = target(chosen);
    const known = this.known(chosen);
    const changes = plan(to, system, shell, known);
    // Only the user's settings are synced.
    const kept = chosen === "user" ? keptHere(to, changes.map(({ key }) => key), known.find(({ key }) => key === ignored)) : undefined;
    if (kept !== undefined) changes.push(kept);
    await this.manager.get(); // shells report to it
    // Kept first: the window may close in between.
    await this.keep(chosen, changes);
    const { written, failed } = await write(to, changes);
    await this.keep(chosen, written);
    this.report(failed);
    await this.until((used) => used === shell.path);
    const confining = ({ key }: { key: string }) => key !== ignored;
    this.tell(written.filter(confining), failed.filter(confining));
    if (failed.some(({ key }) => key === ignored)) {
      void warn(synced());
    }
    await offerToTurnOn(this.manager, this.turnOn);
  }

  /** Takes back what was written. */
  async undo(): Promise<void> {
    if (!this.active) {
      void inform(vscode.l10n.t("Nothing was confined by this command, so nothing changes."));
      return;
    }
    const [changed, failed]: [string[], Failure[]] = [[], []];
    for (const scope of scopes) {
      const known = this.known(scope);
      const result = await undo(target(scope), known, this.others());
      const again = known.filter(({ key }) => result.failed.some((failure) => failure.key === key));
      await this.keep(scope, again);
      changed.push(...result.changed);
      failed.push(...result.failed);
    }
    this.report(failed);
    if (failed.length === 0 && changed.length === 0)
      await this.until((used) => path.dirname(used) !== linksDirectory(process.env));
    if (failed.length > 0) {
      void fail(vscode.l10n.t("Not taken back: {0}. See the log.", names(failed)));
    } else if (changed.length > 0) {
      void warn(
        vscode.l10n.t("Taken back, except what was changed since: {0}.", changed.join(", ")),
      );
    } else {
      void inform(
        vscode.l10n.t("The settings are as before. New terminals, tasks and agents are not confined."),
      );
    }
  }

  /** Reports whether a path is in what this command has written. A workspace may name another. */
  private wrote(shell: string): boolean {
    const within = (value: unknown): boolean =>
      value === shell || (typeof value === "object" && value !== null && Object.values(value).some(within));
    return scopes.some((scope) => this.known(scope).some(({ after }) => within(after)));
  }

  private known(scope: Scope): Change[] {
    return this.memory(scope).get<Change[]>(record) ?? [];
  }

  private async keep(scope: Scope, changes: Change[]): Promise<void> {
    await this.memory(scope).update(record, changes.length > 0 ? changes : undefined);
    this.changed.fire();
  }

  private memory(scope: Scope): vscode.Memento {
    return scope === "user" ? this.context.globalState : this.context.workspaceState;
  }

  /**
   * Waits until the editor starts such a shell: it learns of changed profiles
   * late. A setting that counts more may prevent it; then the user sees a
   * warning.
   */
  private async until(isInUse: (shell: string) => boolean): Promise<void> {
    for (let i = 0; i < 20 && !isInUse(vscode.env.shell); i++) await new Promise((resolve) => setTimeout(resolve, 250));
  }

  private report(failed: Failure[]): void {
    for (const { key, error } of failed) this.log.error(line(`${key}: ${describe(error)}`));
  }

  private tell(written: Change[], failed: Failure[]): void {
    if (failed.length > 0) {
      void fail(vscode.l10n.t("Not written, so not confined: {0}. See the log.", names(failed)));
      return;
    }
    const other = written.filter(({ key, after }) => !holds(key, after)).map(({ key }) => key);
    if (other.length > 0) {
      void warn(
        vscode.l10n.t("Written, but another setting counts, so not confined: {0}.", other.join(", ")),
      );
      return;
    }
    const back = vscode.l10n.t("Undo");
    void inform(vscode.l10n.t("New terminals, tasks and agents' terminals are confined."), back)
      .then((choice) => (choice === back ? vscode.commands.executeCommand("sandboxSidecar.unconfineAll") : undefined));
  }
}

/** Offers to turn the sandbox on: no terminal is confined while it is off. */
export async function offerToTurnOn(manager: Manager, turnOn: () => Promise<void>): Promise<void> {
  const folder = currentFolder();
  if (folder === undefined) return;
  const params = { projectDir: folder.uri.fsPath, kind: "terminal" as const };
  const { policy } = await manager.request(PolicyGetRequest, params);
  if (!policy.restricted) await turnOn();
}

/** Says what may happen if the settings could not be kept on this machine. */
export function synced(): string {
  return vscode.l10n.t("Settings Sync may take these settings to a machine where nothing confines terminals.");
}

/** What is written to the user's settings, with what keeps it on this machine. */
function listed(values: [key: string, value: unknown][]): [key: string, value: unknown][] {
  const has = target("user").has(ignored);
  return has ? [...values, [ignored, values.map(([key]) => key)]] : values;
}

/** The shells that VS Code's settings name for terminals, tasks and agents. */
function usedShells(): string[] {
  const system = systemName(process.platform);
  const settings = vscode.workspace.getConfiguration();
  const name = settings.get<string | null>(`terminal.integrated.defaultProfile.${system}`) ?? "";
  const all = settings.get<Record<string, unknown>>(`terminal.integrated.profiles.${system}`) ?? {};
  const profiles = [
    all[name],
    settings.get<unknown>(`terminal.integrated.automationProfile.${system}`),
    settings.get<unknown>(`terminal.integrated.agentHostProfile.${system}`),
    settings.get<unknown>(`chat.tools.terminal.terminalProfile.${system}`),
  ];
  return profiles.flatMap((profile) => [(profile as { path?: unknown } | null | undefined)?.path].flat()).filter((one) => typeof one === "string");
}

/** Reports whether a setting has the value that was written. */
export function holds(key: string, after: unknown): boolean {
  const now: unknown = vscode.workspace.getConfiguration().get(key);
  if (typeof after !== "object" || after === null) return equal(now, after);
  if (typeof now !== "object" || now === null) return false;
  const values = now as Record<string, unknown>;
  return Object.entries(after).every(([name, value]) => equal(values[name], value));
}

function names(failed: Failure[]): string {
  return failed.map(({ key }) => key).join(", ");
}

/** The settings of a scope. */
export function target(scope: Scope): Target {
  const where = scope === "user" ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
  return {
    has: (key) => vscode.workspace.getConfiguration().has(key),
    get: (key) => {
      const values = vscode.workspace.getConfiguration().inspect(key);
      return scope === "user" ? values?.globalValue : values?.workspaceValue;
    },
    set: async (key, value) => vscode.workspace.getConfiguration().update(key, value, where),
  };
}

/**
 * Returns the link for the shell of the user's default profile, with its
 * arguments; else for the editor's default shell.
 */
async function usersShell(directory: string): Promise<Shell> {
  const settings = vscode.workspace.getConfiguration("terminal.integrated");
  const system = systemName(process.platform);
  const name = settings.get<string | null>(`defaultProfile.${system}`) ?? "";
  const profile = settings.get<Record<string, { path?: unknown; args?: unknown } | null>>(`profiles.${system}`)?.[name];
  const paths = [profile?.path].flat().filter((item) => typeof item === "string");
  const args = Array.isArray(profile?.args) ? profile.args.filter((arg) => typeof arg === "string") : [];
  const used = paths[0] ?? (vscode.env.shell === "" ? (process.env["SHELL"] ?? "") : vscode.env.shell);
  const link = await linkFor(used, directory);
  return { name: `${path.basename(link)} (sandbox)`, path: link, args };
}

/** Shows what will be written, and asks where to. */
async function ask(values: [key: string, value: unknown][]): Promise<Scope | undefined> {
  const user = vscode.l10n.t("Your Settings");
  const workspace = vscode.l10n.t("Workspace Settings");
  const both = vscode.workspace.isTrusted && vscode.workspace.workspaceFolders !== undefined;
  const lines = [
    vscode.l10n.t("This is written to the settings that you choose:"),
    ...values.map(([key, value]) => `${quote(key)}: ${json(value)}`),
  ];
  if (values.some(([key]) => key === ignored)) lines.push(vscode.l10n.t("Only your own settings get {0}.", ignored));
  if (vscode.env.remoteName !== undefined && vscode.env.uiKind === vscode.UIKind.Desktop) {
    lines.push(vscode.l10n.t("Your settings count on other machines, too, where these paths may be missing."));
  }
  const choice = await vscode.window.showInformationMessage(
    vscode.l10n.t("Confine all new terminals, tasks and agents' terminals?"),
    { modal: true, detail: lines.join("\n\n") },
    user,
    ...(both ? [workspace] : []),
  );
  return choice === user ? "user" : choice === workspace ? "workspace" : undefined;
}

/** Returns the program that the links lead to; undefined if there is none. */
export async function linkedProgram(): Promise<string | undefined> {
  const directory = linksDirectory(process.env);
  if (directory === undefined) return undefined;
  return realpath(path.join(directory, "sandbox-sh")).catch(() => undefined);
}
