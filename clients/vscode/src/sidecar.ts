import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

import {
  createMessageConnection,
  StreamMessageReader,
  StreamMessageWriter,
  type MessageConnection,
  type NotificationType,
} from "vscode-jsonrpc/node";

import { quote } from "./display";
import {
  ExitNotification,
  InitializedNotification,
  InitializeRequest,
  protocolVersion,
  ShutdownRequest,
  type InitializeParams,
  type InitializeResult,
} from "./protocol.gen";

/**
 * How long, in milliseconds, the sidecar may take to shut down. It kills every
 * session first, usually within milliseconds.
 */
const timeout = 4000;

/** How to start a sidecar process. */
export interface Launch {
  program: string;
  args: string[];
  env: Record<string, string>;
  initialize: InitializeParams;
  /** Registers handlers before the first message. */
  attach(connection: MessageConnection): void;
  /** Receives a line of the standard error. */
  onLine(line: string): void;
}

/** How a process ended, in words. */
export type ExitReason = string;

/**
 * One sidecar process, from start to end. The manager owns what outlives it:
 * handlers and restarts. If the extension host is killed, the sidecar's
 * standard input closes, and the sidecar ends with every session.
 */
export class Sidecar {
  private constructor(
    private readonly child: ChildProcess,
    readonly connection: MessageConnection,
    readonly initializeResult: InitializeResult,
    /** Settles when the process has ended and all its messages were handled. */
    readonly ended: Promise<ExitReason>,
  ) {}

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /**
   * Starts a process and initializes the connection. If anything fails, no
   * process is left.
   */
  static async start(launch: Launch): Promise<Sidecar> {
    const child = spawn(launch.program, launch.args, { stdio: "pipe", env: launch.env, cwd: "/" });
    const failed = new Promise<never>((_, reject) => {
      child.once("error", (error) => {
        launch.onLine(error.message);
        reject(new Error(`The sidecar cannot start: ${quote(launch.program)} does not run. See the log.`));
      });
    });
    const ended = new Promise<ExitReason>((resolve) => {
      child.once("exit", (code, signal) => {
        const how = signal === null ? `exit status ${code ?? "unknown"}` : `killed by ${signal}`;
        // Messages sent before come first. A process that still holds the pipe
        // open is not waited for.
        const late = setTimeout(() => resolve(how), 1000);
        child.once("close", () => {
          clearTimeout(late);
          setImmediate(() => resolve(how));
        });
      });
    });
    createInterface({ input: child.stderr }).on("line", (line) => launch.onLine(line));
    const connection = createMessageConnection(
      new StreamMessageReader(child.stdout),
      new StreamMessageWriter(child.stdin),
    );
    // The end of the process reports a broken pipe.
    child.stdin.on("error", (error) => launch.onLine(`write to the sidecar: ${error.message}`));
    connection.onError(([error]) => launch.onLine(`connection to the sidecar: ${error.message}`));
    launch.attach(connection);
    connection.listen();
    void ended.then(() => connection.dispose());
    try {
      const early = ended.then((how): never => {
        throw new Error(`The sidecar cannot start: ${quote(launch.program)} ended at once (${how}). See the log.`);
      });
      const initializeResult = await Promise.race([
        connection.sendRequest(InitializeRequest, launch.initialize),
        failed,
        early,
      ]);
      if (initializeResult.protocolVersion !== protocolVersion) {
        const { version } = initializeResult.serverInfo;
        launch.onLine(
          `the sidecar speaks protocol ${initializeResult.protocolVersion}, the extension ${protocolVersion}`,
        );
        const named = quote(version ?? "unknown");
        throw new Error(`The sidecar (version ${named}) does not match this extension. Install one release of both.`);
      }
      await connection.sendNotification(InitializedNotification, {});
      return new Sidecar(child, connection, initializeResult, ended);
    } catch (error) {
      child.kill("SIGKILL");
      connection.dispose();
      throw error;
    }
  }

  /** Sends a notification. If the process has ended, nothing happens. */
  notify<P>(type: NotificationType<P>, params: P): void {
    notify(this.connection, type, params);
  }

  /**
   * Ends the process with everything it started, and resolves when it has
   * ended.
   */
  async shutdown(): Promise<void> {
    const late = setTimeout(() => this.child.kill("SIGKILL"), timeout); // its watchdog ends the sessions
    try {
      await this.connection.sendRequest(ShutdownRequest, {});
      await this.connection.sendNotification(ExitNotification, {});
      this.child.stdin?.end();
    } catch {
      this.child.kill("SIGKILL"); // it does not respond
    }
    await this.ended;
    clearTimeout(late);
  }
}

/** Sends a notification; does nothing if the connection is closed. */
export function notify<P>(connection: MessageConnection, type: NotificationType<P>, params: P): void {
  try {
    (connection.sendNotification as (type: NotificationType<P>, params: P) => Promise<void>)(type, params).catch(
      () => undefined,
    );
  } catch {
    // The connection has closed meanwhile.
  }
}
