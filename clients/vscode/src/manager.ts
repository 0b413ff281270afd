import * as path from "node:path";

import * as vscode from "vscode";
import type {
  MessageConnection,
  NotificationType,
  RequestHandler,
  RequestParam,
  RequestType,
} from "vscode-jsonrpc/node";

import { Backoff } from "./backoff";
import { findProgram, ProgramNotFound } from "./binary";
import { configuration, section } from "./configuration";
import { sidecarEnvironment } from "./environment";
import { line, quote } from "./display";
import { describe } from "./errors";
import {
  DidChangeWorkspaceFoldersNotification,
  LogMessageNotification,
  protocolVersion,
  type DeniedParams,
  type Finding,
  type InitializeResult,
  type WorkspaceFolder,
} from "./protocol.gen";
import { fail, inform } from "./notices";
import { Sessions } from "./sessions";
import { Sidecar } from "./sidecar";

/** The state of the window's sidecar. */
export type State =
  | { is: "idle" }
  | { is: "starting" }
  | { is: "running"; initializeResult: InitializeResult }
  | { is: "waiting"; reason: string }
  | { is: "failed"; reason: string };

/** A sidecar that is ready for requests. */
export interface Running {
  sidecar: Sidecar;
  sessions: Sessions;
}

function wireFolder(folder: vscode.WorkspaceFolder): WorkspaceFolder {
  return { path: folder.uri.fsPath, name: folder.name };
}

/**
 * The window's sidecar: no process until one is needed, then one process, and a
 * new one if that ends. The manager lives as long as the extension; a Sidecar
 * is one process.
 */
export class Manager {
  private readonly changed = new vscode.EventEmitter<State>();
  private readonly denied = new vscode.EventEmitter<DeniedParams>();
  private readonly reviewed = new vscode.EventEmitter<Finding[]>();
  private readonly exited = new vscode.EventEmitter<string>();
  private readonly backoff = new Backoff();
  private readonly attachments: ((connection: MessageConnection) => void)[] = [];
  private readonly notifications = new Map<string, vscode.EventEmitter<unknown>>();
  private current: State = { is: "idle" };
  private starting: Promise<Running> | undefined;
  private running: Running | undefined;
  private timer: NodeJS.Timeout | undefined;
  private stopping = false;
  /** The window closes: no new process may start. */
  private ended = false;

  readonly onDidChange = this.changed.event;
  /** Fires for each denial, in any session. */
  readonly onDidDeny = this.denied.event;
  /** Fires when a session has ended, with its id. */
  readonly onDidExit = this.exited.event;
  /** Fires when a session has ended and files are to be checked. */
  readonly onDidReview = this.reviewed.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
  ) {
    context.subscriptions.push(
      this.changed,
      this.denied,
      this.reviewed,
      this.exited,
      vscode.workspace.onDidChangeWorkspaceFolders(({ added, removed }) => {
        this.running?.sidecar.notify(DidChangeWorkspaceFoldersNotification, {
          added: added.map(wireFolder),
          removed: removed.map(wireFolder),
        });
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        const needed = ["path", "settingsPath", "logLevel"].some((key) =>
          event.affectsConfiguration(`${section}.${key}`),
        );
        if (needed && this.current.is !== "idle") void this.offerRestart();
      }),
    );
  }

  get state(): State {
    return this.current;
  }

  /** The running process, if any. */
  get now(): Running | undefined {
    return this.running;
  }

  /**
   * Registers a handler for a notification, for every later process. Call it
   * before the first process starts.
   */
  onNotification<P>(type: NotificationType<P>, handle: (params: P) => void): void {
    const known = this.notifications.get(type.method);
    if (known !== undefined) {
      known.event(handle as (params: unknown) => void);
      return;
    }
    // A connection accepts one handler for a method, so an emitter serves
    // several.
    const emitter = new vscode.EventEmitter<unknown>();
    this.notifications.set(type.method, emitter);
    this.context.subscriptions.push(emitter);
    emitter.event(handle as (params: unknown) => void);
    this.attachments.push((connection) => void connection.onNotification(type, (params: P) => emitter.fire(params)));
  }

  /**
   * Registers a handler for a request, for every later process. Call it before
   * the first process starts.
   */
  onRequest<P, R, E>(type: RequestType<P, R, E>, handle: RequestHandler<P, R, E>): void {
    this.attachments.push((connection) => void connection.onRequest(type, handle as NoInfer<RequestHandler<P, R, E>>));
  }

  /** Returns a sidecar that is ready; starts one if needed. */
  async get(): Promise<Running> {
    if (this.running !== undefined) return this.running;
    if (this.ended) throw new Error(vscode.l10n.t("The window closes."));
    return (this.starting ??= this.start().finally(() => (this.starting = undefined)));
  }

  /** Sends a request; starts a sidecar if needed. */
  async request<P, R, E>(type: RequestType<P, R, E>, params: RequestParam<P>): Promise<R> {
    const { sidecar } = await this.get();
    return sidecar.connection.sendRequest(type, params);
  }

  /** Returns the path of the program. */
  async program(): Promise<string> {
    const own = path.join(this.context.extensionPath, "bin");
    // In a checkout of the repository the extension is clients/vscode.
    const checkout = path.join(this.context.extensionPath, "..", "..", "bin");
    const released = this.context.extensionMode === vscode.ExtensionMode.Production;
    return findProgram({
      configured: configuration().path,
      directories: released ? [own] : [own, checkout],
      searchPath: process.env["PATH"] ?? "",
    });
  }

  /** Ends the sidecar with every session, and starts a new one. */
  async restart(): Promise<void> {
    await this.stop();
    this.backoff.reset();
    await this.get();
  }

  /** Ends the sidecar for good, as the window closes. */
  async end(): Promise<void> {
    this.ended = true;
    await this.stop();
  }

  /** Ends the sidecar with every session. */
  async stop(): Promise<void> {
    clearTimeout(this.timer);
    await this.starting?.catch(() => undefined);
    this.stopping = true;
    try {
      await this.running?.sidecar.shutdown();
    } finally {
      this.stopping = false;
    }
    this.set({ is: "idle" });
  }

  private set(state: State): void {
    this.current = state;
    this.changed.fire(state);
  }

  private async start(): Promise<Running> {
    clearTimeout(this.timer);
    this.set({ is: "starting" });
    try {
      const running = await this.launch();
      this.running = running;
      this.set({ is: "running", initializeResult: running.sidecar.initializeResult });
      void running.sidecar.ended.then((how) => this.onEnded(running, how));
      return running;
    } catch (error) {
      const reason = describe(error);
      this.log.error(reason);
      if (error instanceof ProgramNotFound) this.log.info(line(error.details));
      this.set({ is: "failed", reason });
      throw error;
    }
  }

  private async launch(): Promise<Running> {
    const program = await this.program();
    const settings = configuration();
    let sessions: Sessions | undefined;
    const sidecar = await Sidecar.start({
      program,
      args: ["serve", "--log-level", settings.logLevel],
      env: sidecarEnvironment(process.env),
      initialize: {
        processId: process.pid,
        protocolVersion,
        clientInfo: { name: "vscode", version: vscode.version },
        workspaceFolders: (vscode.workspace.workspaceFolders ?? []).map(wireFolder),
        capabilities: { flowControl: true, approvals: true, window: true },
        initializationOptions: settings.settingsPath === "" ? {} : { userSettingsPath: settings.settingsPath },
      },
      attach: (connection) => {
        sessions = new Sessions(
          connection,
          (denial) => this.denied.fire(denial),
          (findings) => this.reviewed.fire(findings),
          (sessionId) => this.exited.fire(sessionId),
        );
        connection.onNotification(LogMessageNotification, ({ type, message }) => {
          if (type === 1) this.log.error(line(message));
          else if (type === 2) this.log.warn(line(message));
          else this.log.info(line(message));
        });
        for (const attach of this.attachments) attach(connection);
      },
      onLine: (text) => this.log.info(line(text)),
    });
    if (sessions === undefined) throw new Error("The sidecar cannot start: no connection was opened.");
    const { version } = sidecar.initializeResult.serverInfo;
    this.log.info(`started ${quote(program)}, version ${version ?? "unknown"}, as process ${sidecar.pid}`);
    return { sidecar, sessions };
  }

  private onEnded(ended: Running, how: string): void {
    if (this.running !== ended) return;
    this.running = undefined;
    const count = ended.sessions.size;
    ended.sessions.notifyLost();
    this.log.info(`the sidecar ended (${how})`);
    if (this.stopping) return;
    const wait = this.backoff.ended(Date.now());
    if (wait === undefined) {
      this.set({ is: "failed", reason: vscode.l10n.t("The sandbox sidecar keeps ending ({0}). See the log.", how) });
      void this.showEnd(vscode.l10n.t("The sandbox sidecar keeps ending, so it is not restarted. See the log."));
      return;
    }
    this.set({ is: "waiting", reason: vscode.l10n.t("The sandbox sidecar ended ({0}). It is restarting.", how) });
    this.timer = setTimeout(() => void this.get().catch(() => undefined), wait);
    void this.showEnd(
      count === 0
        ? vscode.l10n.t("The sandbox sidecar ended unexpectedly. It is restarting.")
        : count === 1
          ? vscode.l10n.t("The sandbox sidecar ended unexpectedly, and one session with it. It is restarting.")
          : vscode.l10n.t("The sandbox sidecar ended unexpectedly, and {0} sessions with it. It is restarting.", count),
    );
  }

  /** Shows an error that offers the log and a restart. */
  private async showEnd(message: string): Promise<void> {
    const [log, restart] = [vscode.l10n.t("Show Log"), vscode.l10n.t("Restart")];
    const choice = await fail(message, log, restart);
    if (choice === log) this.log.show();
    if (choice === restart) await this.tryRestart();
  }

  /** Restarts at the user's request, and shows what fails. */
  async tryRestart(): Promise<void> {
    try {
      await this.restart();
    } catch (error) {
      void this.showFailure(error);
    }
  }

  /** Shows why no sidecar is running. */
  async showFailure(error: unknown): Promise<void> {
    const [log, settings] = [vscode.l10n.t("Show Log"), vscode.l10n.t("Open Settings")];
    const choice = await fail(
      describe(error),
      ...(error instanceof ProgramNotFound ? [settings, log] : [log]),
    );
    if (choice === log) this.log.show();
    if (choice === settings) await vscode.commands.executeCommand("workbench.action.openSettings", `${section}.path`);
  }

  private async offerRestart(): Promise<void> {
    const restart = vscode.l10n.t("Restart");
    const message = vscode.l10n.t(
      "The new settings apply after a restart of the sidecar, which ends every sandboxed terminal.",
    );
    if ((await inform(message, restart)) === restart) await this.tryRestart();
  }
}
