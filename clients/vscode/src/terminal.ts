import { constants } from "node:os";

import * as vscode from "vscode";

import type { ClipboardFilter } from "./clipboard";
import { line } from "./display";
import { describe } from "./errors";
import type { Manager, Running } from "./manager";
import {
  InputNotification,
  ResizeNotification,
  type DeniedParams,
  type ExitStatus,
  type SpawnParams,
  type SpawnResult,
} from "./protocol.gen";
import type { Renderer } from "./renderer";
import type { Listener } from "./sessions";

/** What a terminal is made with. */
export interface TerminalOptions {
  sessionId: string;
  /** The session's parameters, but for its id and its size. */
  params(): Promise<SpawnParams>;
  /** Raises an error where the session must not go on as it has been started. */
  accept(spawned: SpawnResult): void;
  /** Answers the terminal's name; spawned is undefined until the session has started. */
  name(spawned: SpawnResult | undefined, stale: boolean): string;
  filter: ClipboardFilter | undefined;
  onStarted(spawned: SpawnResult): void;
  onEnded(): void;
}

/** The session of one of VS Code's terminals. */
export class SandboxTerminal implements vscode.Pseudoterminal, Listener {
  private readonly written = new vscode.EventEmitter<string>();
  private readonly closed = new vscode.EventEmitter<number | undefined>();
  private readonly renamed = new vscode.EventEmitter<string>();
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  private running: Running | undefined;
  private size: { cols: number; rows: number } | undefined;
  private typed = "";
  private isStale = false;
  private isClosed = false;
  /** The session is over and its last words are on show; any key closes the terminal. */
  private isEnded = false;

  readonly onDidWrite = this.written.event;
  readonly onDidClose = this.closed.event as NonNullable<vscode.Pseudoterminal["onDidClose"]>;
  readonly onDidChangeName = this.renamed.event;

  /** What was started; undefined before. */
  spawned: SpawnResult | undefined;

  constructor(
    private readonly manager: Manager,
    private readonly renderer: Renderer,
    readonly options: TerminalOptions,
  ) {}

  /** A new terminal would get another policy. */
  get stale(): boolean {
    return this.isStale;
  }

  set stale(value: boolean) {
    if (value === this.isStale) return;
    this.isStale = value;
    this.rename();
  }

  open(dimensions: vscode.TerminalDimensions | undefined): void {
    if (dimensions !== undefined) this.size = { cols: dimensions.columns, rows: dimensions.rows };
    void this.start();
  }

  private async start(): Promise<void> {
    const { sessionId } = this.options;
    try {
      const running = await this.manager.get();
      const params = await this.options.params();
      const started = this.size;
      const spawned = await running.sessions.spawn({ ...params, ...started, sessionId }, this);
      if (this.closedMeanwhile()) return void running.sessions.close(sessionId);
      try {
        this.options.accept(spawned);
      } catch (error) {
        await running.sessions.close(sessionId, 0);
        throw error;
      }
      this.spawned = spawned;
      this.running = running;
      if (this.size !== started) this.resize(); // changed meanwhile
      this.send();
      this.rename();
      this.options.onStarted(spawned);
    } catch (error) {
      this.showEnd(describe(error));
    }
  }

  /** The user has closed the terminal while its session started. */
  private closedMeanwhile(): boolean {
    return this.isClosed;
  }

  private rename(): void {
    this.renamed.fire(this.options.name(this.spawned, this.isStale));
  }

  handleInput(data: string): void {
    if (this.isEnded) return this.closed.fire(undefined);
    // Input comes in pieces when something is pasted; they go as one.
    if (this.typed === "") setImmediate(() => this.send());
    this.typed += data;
  }

  /** Sends what was typed; what was typed while the session starts waits for it. */
  private send(): void {
    if (this.running === undefined || this.typed === "") return;
    const data = Buffer.from(this.typed, "utf8").toString("base64");
    this.typed = "";
    const { sessionId } = this.options;
    this.running.sidecar.notify(InputNotification, { sessionId, data });
  }

  setDimensions(dimensions: vscode.TerminalDimensions): void {
    this.size = { cols: dimensions.columns, rows: dimensions.rows };
    this.resize();
  }

  private resize(): void {
    if (this.running === undefined || this.size === undefined) return;
    const { sessionId } = this.options;
    this.running.sidecar.notify(ResizeNotification, { sessionId, ...this.size });
  }

  /** The user has closed the terminal. */
  close(): void {
    this.isClosed = true;
    void this.running?.sessions.close(this.options.sessionId);
    this.options.onEnded();
  }

  output(bytes: Buffer): Promise<void> | undefined {
    if (this.isClosed) return undefined;
    const text = this.decoder.decode(bytes, { stream: true });
    this.written.fire(this.options.filter?.pass(text) ?? text);
    return this.renderer.caughtUp();
  }

  exited(status: ExitStatus): void {
    this.running = undefined;
    if (status.signal === null) return this.finish(status.exitCode ?? 0);
    // A shell would say so, too: 128 and the signal's number.
    const number = (constants.signals as Partial<Record<string, number>>)[status.signal];
    this.finish(number === undefined ? 128 : 128 + number);
  }

  private finish(code: number): void {
    this.options.onEnded();
    this.closed.fire(code);
  }

  lost(reason: string): void {
    this.running = undefined;
    this.showEnd(vscode.l10n.t("The sandbox's sidecar ended ({0}), and this session with it.", reason));
  }

  denied(_denial: DeniedParams): void {
    // Told of for all sessions together.
  }

  /** Leaves the last words on show; VS Code would close the terminal at once, and with it what is to be read. */
  private showEnd(message: string): void {
    this.isEnded = true;
    this.options.onEnded();
    // CAN ends whatever escape sequence the program left open.
    this.written.fire(
      `\u0018\u001b[0m\r\n\u001b[31m${line(message)}\u001b[0m\r\n${vscode.l10n.t("Press any key to close the terminal.")}\r\n`,
    );
  }
}
