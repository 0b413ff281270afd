import { randomUUID } from "node:crypto";
import { homedir } from "node:os";
import * as path from "node:path";

import * as vscode from "vscode";

import { ClipboardFilter } from "./clipboard";
import { configuration } from "./configuration";
import { systemName } from "./confinement";
import { quote, text } from "./display";
import { describe } from "./errors";
import { pickFolder, placeOf } from "./folders";
import { programOf, startDirectory, withEnvironment, type Variables } from "./integrated";
import { kindOf } from "./kinds";
import type { Manager } from "./manager";
import { inform, warn } from "./notices";
import { opensOurs } from "./profileTitle";
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

  /** The user was told that a split is a tab. */
  private toldOfTabs = false;

  /** Fires when a terminal has started or ended. */
  readonly onDidChange = this.changed.event;
  /** Asks before a terminal opens that would not be sandboxed. */
  mayOpen: (projectDir: string) => Promise<boolean> = () => Promise.resolve(true);

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly manager: Manager,
    private readonly log: vscode.LogOutputChannel,
  ) {
    context.subscriptions.push(
      this.changed,
      vscode.window.registerTerminalProfileProvider(profile, this),
      vscode.window.onDidChangeActiveTerminal((terminal) => this.tellFront(terminal)),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("terminal.integrated")) this.tellFront(vscode.window.activeTerminal);
      }),
      // The key has a command apart: in a menu, VS Code's own split has that key.
      vscode.commands.registerCommand("sandboxSidecar.splitByKey", () =>
        vscode.commands.executeCommand("sandboxSidecar.splitTerminal"),
      ),
      vscode.window.onDidStartTerminalShellExecution(({ terminal, execution }) => {
        const pty = this.of(terminal);
        if (pty !== undefined) pty.program = programOf(execution.commandLine.value);
      }),
      vscode.window.onDidEndTerminalShellExecution(({ terminal }) => {
        const pty = this.of(terminal);
        if (pty !== undefined) pty.program = undefined;
      }),
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

  /** Returns the project of a terminal of this extension. */
  projectOf(terminal: vscode.Terminal): Promise<string | undefined> {
    return Promise.resolve(this.of(terminal)?.options.place.projectDir);
  }

  /**
   * Lets the key and the menus for splitting keep to the sandbox. Where VS
   * Code's own split does, it is left alone.
   */
  private tellFront(terminal: vscode.Terminal | undefined): void {
    const ours = this.of(terminal) !== undefined;
    void vscode.commands.executeCommand("setContext", "sandboxSidecar.inFront", ours && !isDefault());
    void vscode.commands.executeCommand("setContext", "sandboxSidecar.isDefault", isDefault());
  }

  async provideTerminalProfile(): Promise<vscode.TerminalProfile> {
    const folder = await pickFolder();
    const place = folder === undefined ? undefined : await this.start(folder);
    // VS Code shows the error. Without one it would say that the profile is broken.
    if (place === undefined || !(await this.mayOpen(place.projectDir)))
      throw new Error(vscode.l10n.t("No terminal was opened."));
    return new vscode.TerminalProfile(await this.options(place.cwd, place.projectDir));
  }

  /**
   * Returns where a new terminal of a folder starts, as VS Code's own setting says.
   * It may be the folder's, so it leads nowhere else.
   */
  private async start(folder: vscode.WorkspaceFolder): Promise<{ cwd: string; projectDir: string }> {
    const projectDir = folder.uri.fsPath;
    const setting = vscode.workspace.getConfiguration("terminal.integrated", folder.uri).get<unknown>("cwd");
    const directory = startDirectory(setting, variables(projectDir));
    if (directory === undefined) return { cwd: projectDir, projectDir };
    try {
      const { cwd } = await placeOf(directory, [projectDir]);
      return { cwd, projectDir };
    } catch (error) {
      this.log.info(`terminal.integrated.cwd is not used: ${describe(error)}`);
      return { cwd: projectDir, projectDir };
    }
  }

  /**
   * Opens a terminal in a folder, which the user selects if there are several.
   */
  async create(): Promise<vscode.Terminal | undefined> {
    const folder = await pickFolder();
    if (folder === undefined) return undefined;
    const { cwd, projectDir } = await this.start(folder);
    return this.open(cwd, projectDir);
  }

  /**
   * Opens a terminal in a directory of a project. Returns undefined if it would not
   * be sandboxed, and the user wants none then.
   */
  async open(
    cwd: string,
    projectDir: string,
    location?: vscode.TerminalSplitLocationOptions,
  ): Promise<vscode.Terminal | undefined> {
    return (await this.mayOpen(projectDir)) ? this.show(cwd, projectDir, location) : undefined;
  }

  /** Opens a terminal without the question. */
  async show(cwd: string, projectDir: string, location?: vscode.TerminalSplitLocationOptions): Promise<vscode.Terminal> {
    const options = await this.options(cwd, projectDir);
    const terminal = vscode.window.createTerminal(location === undefined ? options : { ...options, location });
    terminal.show();
    return terminal;
  }

  /**
   * Splits the terminal in front. If sandboxed terminals are the default, VS
   * Code's own split opens one. Otherwise that would start a shell that is not
   * sandboxed, and an extension cannot split (microsoft/vscode#205254): another
   * terminal opens, in the same directory if it is in a folder.
   */
  async split(): Promise<vscode.Terminal | undefined> {
    const parentTerminal = vscode.window.activeTerminal;
    if (parentTerminal !== undefined && isDefault()) {
      await vscode.commands.executeCommand("workbench.action.terminal.split");
      return vscode.window.activeTerminal;
    }
    const own = this.of(parentTerminal)?.options.place.projectDir;
    const folder = own ?? (await pickFolder())?.uri.fsPath;
    if (folder === undefined) return undefined;
    if (parentTerminal === undefined) return this.open(folder, folder);
    // What runs there says where it is, and must not lead to another project.
    const place = await placeOf(parentTerminal.shellIntegration?.cwd?.fsPath, [folder]).catch(() => undefined);
    const opened = await this.open(place?.cwd ?? folder, folder, { parentTerminal });
    if (opened !== undefined) void this.tellOfTabs();
    return opened;
  }

  /** Says once what makes a split a split. */
  private async tellOfTabs(): Promise<void> {
    if (this.toldOfTabs) return;
    this.toldOfTabs = true;
    const make = vscode.l10n.t("Make Default");
    const text = vscode.l10n.t("VS Code splits into the default terminal only, so this one opened beside the other.");
    if ((await inform(text, make)) === make) await vscode.commands.executeCommand("sandboxSidecar.makeDefault");
  }

  /** Reports whether a new terminal would be confined, which its icon shows. */
  private async confines(projectDir: string): Promise<boolean> {
    try {
      const { policy } = await this.manager.request(PolicyGetRequest, { projectDir, kind: "terminal" });
      const { state } = this.manager;
      const none = state.is === "running" && cannotSandbox(state.initializeResult);
      return policy.restricted && !none;
    } catch {
      return false; // nothing starts, and the terminal says why
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
    const shield = await this.confines(projectDir);
    const integrated = vscode.workspace
      .getConfiguration("terminal.integrated", vscode.Uri.file(projectDir))
      .inspect<unknown>(`env.${systemName(process.platform)}`);
    const here = variables(projectDir);
    // A repository must not give a variable that is kept out another name.
    const ofProject = { ...here, env: undefined };
    const pty: SandboxTerminal = new SandboxTerminal(this.manager, this.renderer, {
      sessionId,
      place: { cwd, projectDir },
      params: async () => ({
        kind: "terminal",
        cwd,
        projectDir,
        shell: await this.shell(shell, projectDir, settings.shellIntegration),
        // The values describe this terminal, not the one that started the
        // editor.
        env: {
          ...withEnvironment(
            {
              TERM: "xterm-256color",
              COLORTERM: "truecolor",
              TERM_PROGRAM: "vscode",
              TERM_PROGRAM_VERSION: vscode.version,
            },
            [integrated?.globalValue, here],
            [integrated?.workspaceValue, ofProject],
            [integrated?.workspaceFolderValue, ofProject],
          ),
          ...settings.env,
        },
      }),
      accept: (spawned) => {
        if (!vscode.workspace.isTrusted && !spawned.sandbox.applied) throw untrusted();
      },
      name: (spawned, mark, program) => nameOf(showsProcess() ? (program ?? title) : title, spawned, mark, shield),
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
    const iconPath = shield ? new vscode.ThemeIcon("shield") : notSandboxed();
    return { name: nameOf(title, undefined, undefined, shield), pty, iconPath };
  }

  /** Returns the session of a task's command. It does not run without a sandbox. */
  task(command: string, cwd: string, projectDir: string): SandboxTerminal {
    const sessionId = randomUUID();
    const pty = new SandboxTerminal(this.manager, this.renderer, {
      sessionId,
      place: { cwd, projectDir },
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

function variables(workspaceFolder: string): Variables {
  return { workspaceFolder, userHome: homedir(), env: process.env };
}

/** Whether "+" and VS Code's own split open terminals of this extension. */
export function isDefault(): boolean {
  const settings = vscode.workspace.getConfiguration("terminal.integrated");
  const system = systemName(process.platform);
  return opensOurs(settings.get(`defaultProfile.${system}`), settings.get(`profiles.${system}`));
}

/** Whether the user's titles of terminals have the program that runs, as by default. */
function showsProcess(): boolean {
  return vscode.workspace.getConfiguration("terminal.integrated").get("tabs.title", "").includes("${process}");
}

/** The icon of a terminal that nothing confines. */
function notSandboxed(): vscode.ThemeIcon {
  return new vscode.ThemeIcon("unlock", new vscode.ThemeColor("editorWarning.foreground"));
}

/** Says why nothing opens in a workspace that is not trusted. */
export function untrusted(): Error {
  return new Error(
    vscode.l10n.t("Not opened: this workspace is not trusted. Turn the sandbox on, and it opens without trust."),
  );
}

/**
 * Returns a terminal's name: its program, and what is not as its shield says. A
 * list of ten terminals is narrow, so the name of a sandboxed one is short. The
 * mark comes first, so that such a list shows it.
 */
function nameOf(
  title: string,
  spawned: SpawnResult | undefined,
  mark: Mark | undefined,
  shield: boolean,
): string {
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
      if (mark === "stale") return vscode.l10n.t("⚠ {0} (old settings)", title);
      return shield ? title : vscode.l10n.t("{0} (sandbox)", title);
  }
}
