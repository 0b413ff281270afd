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

/**
 * How many names of a terminal are remembered as given. More are not chosen in
 * the time in which the editor shows one.
 */
const mostGiven = 64;

/** What a terminal's name tells: old settings, a program that asks, or the end. */
export type Mark = "stale" | "waiting" | "ended";

/** How to create a terminal. */
export interface TerminalOptions {
  sessionId: string;
  /** Where it starts, and the folder that it may write. */
  place: { cwd: string; projectDir: string };
  /** The session's parameters, without its id and size. */
  params(): Promise<SpawnParams>;
  /** Throws if the session must not continue as it was started. */
  accept(spawned: SpawnResult): void;
  /**
   * Returns the terminal's name. spawned is undefined until the session has
   * started, and program while no command runs.
   */
  name(spawned: SpawnResult | undefined, mark: Mark | undefined, program: string | undefined): string;
  /** Reports whether the user has given the terminal another name. */
  isRenamed(given: ReadonlySet<string>): boolean;
  /** Whether it ends with its session even if that failed, as a task's does. */
  closesAtEnd: boolean;
  filter: ClipboardFilter | undefined;
  onStarted(spawned: SpawnResult): void;
  onEnded(): void;
}

/** The session of a VS Code terminal. */
export class SandboxTerminal implements vscode.Pseudoterminal, Listener {
  private readonly written = new vscode.EventEmitter<string>();
  private readonly closed = new vscode.EventEmitter<number | undefined>();
  private readonly renamed = new vscode.EventEmitter<string>();
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  private running: Running | undefined;
  private size: { cols: number; rows: number } | undefined;
  private typed = "";
  private isStale = false;
  private isWaiting = false;
  private foreground: string | undefined;
  /** The last names that the terminal was given here, the latest last. */
  private readonly given = new Set<string>();
  private isClosed = false;
  /**
   * The session is over and its final message is visible. Any key closes the
   * terminal.
   */
  private isEnded = false;

  readonly onDidWrite = this.written.event;
  readonly onDidClose = this.closed.event as NonNullable<vscode.Pseudoterminal["onDidClose"]>;
  readonly onDidChangeName = this.renamed.event;

  /** The result of the spawn; undefined before. */
  spawned: SpawnResult | undefined;

  constructor(
    private readonly manager: Manager,
    private readonly renderer: Renderer,
    readonly options: TerminalOptions,
  ) {
    this.given.add(options.name(undefined, undefined, undefined));
  }

  /** Whether a new terminal would get another policy. */
  get stale(): boolean {
    return this.isStale;
  }

  set stale(value: boolean) {
    if (value === this.isStale) return;
    this.isStale = value;
    this.rename();
  }

  /** Whether a program in it waits for the user's answer. */
  set waiting(value: boolean) {
    if (value === this.isWaiting) return;
    this.isWaiting = value;
    this.rename();
  }

  /** The program that runs in it, which its name shows; undefined at a prompt. */
  set program(value: string | undefined) {
    if (value === this.foreground) return;
    this.foreground = value;
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
      if (this.size !== started) this.resize(); // the size has changed meanwhile
      this.send();
      this.rename();
      this.options.onStarted(spawned);
    } catch (error) {
      this.showEnd(describe(error));
    }
  }

  /** Whether the user closed the terminal while its session started. */
  private closedMeanwhile(): boolean {
    return this.isClosed;
  }

  /** Gives the terminal its name, unless the user has given it one. */
  private rename(): void {
    if (this.options.isRenamed(this.given)) return;
    const mark = this.isEnded ? "ended" : this.isWaiting ? "waiting" : this.isStale ? "stale" : undefined;
    const name = this.options.name(this.spawned, mark, this.foreground);
    this.given.delete(name);
    this.given.add(name);
    // Programs choose some of them, and may do so faster than the editor shows them.
    const [oldest] = this.given;
    if (this.given.size > mostGiven && oldest !== undefined) this.given.delete(oldest);
    this.renamed.fire(name);
  }

  handleInput(data: string): void {
    if (this.isEnded) return this.closed.fire(undefined);
    // Pasted text arrives in pieces, which are sent together.
    if (this.typed === "") setImmediate(() => this.send());
    this.typed += data;
  }

  /**
   * Sends the typed input. Input that is typed before the session has started
   * waits for it.
   */
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
    // The exit code of a shell after a signal: 128 plus its number.
    const number = (constants.signals as Partial<Record<string, number>>)[status.signal];
    this.finish(number === undefined ? 128 : 128 + number);
  }

  private finish(code: number): void {
    this.options.onEnded();
    this.closed.fire(code);
  }

  lost(): void {
    this.running = undefined;
    this.showEnd(vscode.l10n.t("The sandbox sidecar ended, and this session with it."));
  }

  denied(_denial: DeniedParams): void {
    // Denials reports those of all sessions.
  }

  /**
   * Shows a final message and keeps the terminal open. VS Code would close it
   * at once, before anybody can read it.
   */
  private showEnd(message: string): void {
    this.isEnded = true;
    this.rename(); // nothing is sandboxed there any more; its icon cannot change
    this.options.onEnded();
    if (this.options.closesAtEnd) {
      this.written.fire(`\u0018\u001b[0m\r\n\u001b[31m${line(message)}\u001b[0m\r\n`);
      this.closed.fire(1);
      return;
    }
    // CAN ends an escape sequence that the program left open.
    const prompt = vscode.l10n.t("Press any key to close the terminal.");
    this.written.fire(`\u0018\u001b[0m\r\n\u001b[31m${line(message)}\u001b[0m\r\n${prompt}\r\n`);
  }
}
