import { randomUUID } from "node:crypto";
import * as path from "node:path";

import * as vscode from "vscode";

import { ClipboardFilter } from "./clipboard";
import { configuration } from "./configuration";
import { quote, text } from "./display";
import { pickFolder, placeOf } from "./folders";
import { kindOf } from "./kinds";
import type { Manager } from "./manager";
import { warn } from "./notices";
import { PolicyExplainRequest, PolicyGetRequest, type Shell, type SpawnResult } from "./protocol.gen";
import { Renderer } from "./renderer";
import { chooseShell, integrate } from "./shell";
import { cannotSandbox } from "./summary";
import { linksDirectory } from "./shellLinks";
import { SandboxTerminal, type Mark } from "./terminal";

/** The id of the terminal profile in package.json. */
export const profile = "sandboxSidecar.terminal";

/** The window's sandboxed terminals. */
export class Terminals implements vscode.TerminalProfileProvider {
  private readonly all = new Map<string, SandboxTerminal>();
  private readonly warned = new Set<string>();
  private readonly changed = new vscode.EventEmitter<void>();
  // The window's command "noop" does nothing, and its answer returns.
  private readonly renderer = new Renderer(() => vscode.commands.executeCommand("noop"));

  /** Fires when a terminal has started or ended. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly manager: Manager,
    private readonly log: vscode.LogOutputChannel,
  ) {
    context.subscriptions.push(
      this.changed,
      vscode.window.registerTerminalProfileProvider(profile, this),
      vscode.window.onDidChangeActiveTerminal((terminal) => this.tellFront(terminal)),
    );
    this.tellFront(vscode.window.activeTerminal);
  }

  /**
   * Returns the session of a VS Code terminal; undefined if it is not sandboxed
   * by this extension.
   */
  of(terminal: vscode.Terminal | undefined): SandboxTerminal | undefined {
    const options = terminal?.creationOptions;
    if (options === undefined || !("pty" in options)) return undefined;
    return [...this.all.values()].find((ours) => ours === options.pty);
  }

  /** Lets the key and the button for splitting keep to the sandbox. */
  private tellFront(terminal: vscode.Terminal | undefined): void {
    void vscode.commands.executeCommand("setContext", "sandboxSidecar.inFront", this.of(terminal) !== undefined);
  }

  async provideTerminalProfile(): Promise<vscode.TerminalProfile | undefined> {
    const folder = await pickFolder();
    return folder === undefined
      ? undefined
      : new vscode.TerminalProfile(await this.options(folder.uri.fsPath, folder.uri.fsPath));
  }

  /**
   * Opens a terminal in a folder, which the user selects if there are several.
   */
  async create(): Promise<vscode.Terminal | undefined> {
    const folder = await pickFolder();
    return folder === undefined ? undefined : this.open(folder.uri.fsPath, folder.uri.fsPath);
  }

  /** Opens a terminal in a directory of a project. */
  async open(cwd: string, projectDir: string, location?: vscode.TerminalSplitLocationOptions): Promise<vscode.Terminal> {
    const options = await this.options(cwd, projectDir);
    const terminal = vscode.window.createTerminal(location === undefined ? options : { ...options, location });
    terminal.show();
    return terminal;
  }

  /**
   * Splits the terminal in front. VS Code's own command would start its default
   * shell, which is not sandboxed. The directory is the same one, if it is in a
   * folder.
   */
  async split(): Promise<vscode.Terminal | undefined> {
    const parentTerminal = vscode.window.activeTerminal;
    if (parentTerminal === undefined) return this.create();
    const ours = await this.of(parentTerminal)?.options.params();
    const folder = ours?.projectDir ?? (await pickFolder())?.uri.fsPath;
    if (folder === undefined) return undefined;
    const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
    const place = await placeOf(parentTerminal.shellIntegration?.cwd?.fsPath, folders).catch(() => undefined);
    return this.open(place?.cwd ?? folder, place?.folder ?? folder, { parentTerminal });
  }

  /** Returns the icon of a new terminal, by what confines it. */
  private async icon(projectDir: string): Promise<vscode.ThemeIcon> {
    try {
      const { policy } = await this.manager.request(PolicyGetRequest, { projectDir, kind: "terminal" });
      const { state } = this.manager;
      const none = state.is === "running" && cannotSandbox(state.initializeResult);
      return policy.restricted && !none ? new vscode.ThemeIcon("shield") : notSandboxed();
    } catch {
      return notSandboxed(); // nothing starts, and the terminal says why
    }
  }

  private async options(cwd: string, projectDir: string): Promise<vscode.ExtensionTerminalOptions> {
    const settings = configuration();
    const shell = chooseShell(
      settings.shell,
      vscode.env.shell,
      process.env["SHELL"] ?? "",
      process.platform,
      linksDirectory(process.env),
    );
    const title = text(path.basename(shell.program));
    const sessionId = randomUUID();
    const pty: SandboxTerminal = new SandboxTerminal(this.manager, this.renderer, {
      sessionId,
      params: async () => ({
        kind: "terminal",
        cwd,
        projectDir,
        shell: await this.shell(shell, projectDir, settings.shellIntegration),
        // The values describe this terminal, not the one that started the
        // editor.
        env: {
          TERM: "xterm-256color",
          COLORTERM: "truecolor",
          TERM_PROGRAM: "vscode",
          TERM_PROGRAM_VERSION: vscode.version,
          ...settings.env,
        },
      }),
      accept: (spawned) => {
        if (!vscode.workspace.isTrusted && !spawned.sandbox.applied) throw untrusted();
      },
      name: (spawned, mark) => nameOf(title, spawned, mark),
      isRenamed: (given) => {
        const terminal = vscode.window.terminals.find((one) => this.of(one) === pty);
        return terminal !== undefined && !given.has(terminal.name);
      },
      closesAtEnd: false,
      filter: settings.clipboard ? undefined : new ClipboardFilter(),
      onStarted: (spawned) => {
        this.warn(spawned.sandbox.warnings);
        // The walkthrough's step is done when this is so.
        if (spawned.sandbox.applied)
          void vscode.commands.executeCommand("setContext", "sandboxSidecar.sandboxedTerminal", true);
        this.changed.fire();
      },
      onEnded: () => {
        if (this.all.delete(sessionId)) this.changed.fire();
      },
    });
    this.all.set(sessionId, pty);
    return { name: nameOf(title, undefined, undefined), pty, iconPath: await this.icon(projectDir) };
  }

  /** Returns the session of a task's command. It does not run without a sandbox. */
  task(command: string, cwd: string, projectDir: string): SandboxTerminal {
    const sessionId = randomUUID();
    const pty = new SandboxTerminal(this.manager, this.renderer, {
      sessionId,
      params: async () => {
        const { policy } = await this.manager.request(PolicyGetRequest, { projectDir, kind: "terminal" });
        if (!policy.restricted) throw taskUnsandboxed();
        const env = { TERM: "xterm-256color", COLORTERM: "truecolor", ...configuration().env };
        return { kind: "terminal", cwd, projectDir, command, env };
      },
      accept: ({ sandbox }) => {
        if (!sandbox.applied) throw taskUnsandboxed();
      },
      name: () => "",
      isRenamed: () => true, // the editor names it after the task
      closesAtEnd: true,
      filter: configuration().clipboard ? undefined : new ClipboardFilter(),
      onStarted: (spawned) => {
        this.warn(spawned.sandbox.warnings);
        this.changed.fire();
      },
      onEnded: () => {
        if (this.all.delete(sessionId)) this.changed.fire();
      },
    });
    this.all.set(sessionId, pty);
    return pty;
  }

  private async shell(
    shell: { program: string; args: string[] },
    projectDir: string,
    integration: boolean,
  ): Promise<Shell> {
    const { policy } = await this.manager.request(PolicyGetRequest, { projectDir, kind: "terminal" });
    // Checked before anything runs. accept checks the spawn's result again.
    if (!vscode.workspace.isTrusted && !policy.restricted) throw untrusted();
    if (!integration) return shell;
    const canRead = async (target: string) => {
      if (!policy.restricted) return true;
      const { allowed } = await this.manager.request(PolicyExplainRequest, {
        projectDir,
        kind: "terminal",
        access: "read",
        target,
      });
      if (!allowed) this.log.info(`no shell integration: the sandbox does not let the shell read ${quote(target)}`);
      return allowed;
    };
    const scripts = path.join(vscode.env.appRoot, "out", "vs", "workbench", "contrib", "terminal", "common", "scripts");
    return (await integrate(shell, scripts, this.context.globalStorageUri.fsPath, canRead)) ?? shell;
  }

  /** Shows each kind of warning once per window. */
  private warn(warnings: string[]): void {
    for (const warning of warnings) {
      if (this.warned.has(kindOf(warning))) continue;
      this.warned.add(kindOf(warning));
      void warn(vscode.l10n.t("Sandbox: {0}", warning));
    }
  }

  /** Marks the terminals in which a program waits for the user's answer. */
  markWaiting(waiting: ReadonlySet<string>): void {
    for (const [id, terminal] of this.all) terminal.waiting = waiting.has(id);
  }

  /**
   * Marks terminals that would get another policy if they were new. Returns how
   * many were not marked before.
   */
  markStale(stale: ReadonlySet<string>): number {
    let newlyStale = 0;
    for (const [id, terminal] of this.all) {
      if (stale.has(id) && !terminal.stale) newlyStale += 1;
      terminal.stale = stale.has(id);
    }
    return newlyStale;
  }
}

function taskUnsandboxed(): Error {
  return new Error(vscode.l10n.t("The task did not run: terminals are not sandboxed. Turn the sandbox on first."));
}

/** The icon of a terminal that nothing confines. */
function notSandboxed(): vscode.ThemeIcon {
  return new vscode.ThemeIcon("unlock", new vscode.ThemeColor("editorWarning.foreground"));
}

function untrusted(): Error {
  return new Error(
    vscode.l10n.t("This workspace is not trusted, so an unsandboxed terminal does not open. Trust it first."),
  );
}

/**
 * Returns a terminal's name: its program and its sandbox, in words for screen
 * readers. The mark comes first, so that a narrow list shows it.
 */
function nameOf(title: string, spawned: SpawnResult | undefined, mark: Mark | undefined): string {
  if (mark === "ended")
    return spawned === undefined ? vscode.l10n.t("{0} (not started)", title) : vscode.l10n.t("{0} (ended)", title);
  if (mark === "waiting") return vscode.l10n.t("? {0} (question)", title);
  switch (spawned?.sandbox.status) {
    case undefined:
      return title; // nothing is known yet
    case "off":
      return vscode.l10n.t("{0} (not sandboxed)", title);
    case "none":
      return vscode.l10n.t("⚠ {0} (not sandboxed)", title);
    default:
      return mark === "stale" ? vscode.l10n.t("⚠ {0} (old settings)", title) : vscode.l10n.t("{0} (sandbox)", title);
  }
}
