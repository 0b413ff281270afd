import type { MessageConnection } from "vscode-jsonrpc/node";

import {
  AckNotification,
  CloseRequest,
  DeniedNotification,
  ExitedNotification,
  OutputNotification,
  SpawnRequest,
  type CloseResult,
  type DeniedParams,
  type ExitStatus,
  type SpawnParams,
  type SpawnResult,
} from "./protocol.gen";
import { notify } from "./sidecar";

/** What a session wants to hear. */
export interface Listener {
  /** Raw bytes, in order. The promise settles when they are consumed: until then the sidecar sends only so much more. */
  output(bytes: Buffer): Promise<void> | undefined;
  /** After the last output. */
  exited(status: ExitStatus): void;
  /** The sidecar is gone, and the session with it. */
  lost(reason: string): void;
  /** Something was refused in the session. */
  denied(denial: DeniedParams): void;
}

/** The sessions of one process of the sidecar. */
export class Sessions {
  private readonly listeners = new Map<string, Listener>();
  private readonly consumed = new Map<string, number>();

  constructor(
    private readonly connection: MessageConnection,
    private readonly onDenied: (denial: DeniedParams) => void,
  ) {
    connection.onNotification(OutputNotification, ({ sessionId, data }) => {
      const bytes = Buffer.from(data, "base64");
      const consumption = this.listeners.get(sessionId)?.output(bytes);
      // What nobody wants any more counts as consumed, too.
      const acknowledge = () => this.acknowledge(sessionId, bytes.length);
      if (consumption === undefined) acknowledge();
      else void consumption.then(acknowledge, acknowledge);
    });
    connection.onNotification(ExitedNotification, ({ sessionId, exitCode, signal }) => {
      const listener = this.listeners.get(sessionId);
      this.listeners.delete(sessionId);
      listener?.exited({ exitCode, signal });
      // Nobody asks for it again: let the sidecar forget it.
      void this.close(sessionId);
    });
    connection.onNotification(DeniedNotification, (denial) => {
      this.listeners.get(denial.sessionId)?.denied(denial);
      this.onDenied(denial);
    });
  }

  /** How many sessions are running. */
  get size(): number {
    return this.listeners.size;
  }

  /** Starts a session, which has an id. The listener hears nothing before the answer, and nothing at all where starting fails. */
  async spawn(params: SpawnParams & { sessionId: string }, listener: Listener): Promise<SpawnResult> {
    this.listeners.set(params.sessionId, listener);
    try {
      return await this.connection.sendRequest(SpawnRequest, params);
    } catch (error) {
      this.listeners.delete(params.sessionId);
      throw error;
    }
  }

  /** Ends a session; undefined where it was closed before, or the sidecar is gone, and so everything of it. */
  async close(sessionId: string, graceMs?: number): Promise<CloseResult | undefined> {
    try {
      return await this.connection.sendRequest(
        CloseRequest,
        graceMs === undefined ? { sessionId } : { sessionId, graceMs },
      );
    } catch {
      return undefined;
    }
  }

  /** Tells every session that the sidecar is gone. */
  notifyLost(reason: string): void {
    const lost = [...this.listeners.values()];
    this.listeners.clear();
    for (const listener of lost) listener.lost(reason);
  }

  private acknowledge(sessionId: string, bytes: number): void {
    const before = this.consumed.get(sessionId);
    this.consumed.set(sessionId, (before ?? 0) + bytes);
    if (before !== undefined) return;
    // One message for all that is consumed in one turn of the loop.
    setImmediate(() => {
      const sum = this.consumed.get(sessionId) ?? 0;
      this.consumed.delete(sessionId);
      notify(this.connection, AckNotification, { sessionId, bytes: sum });
    });
  }
}
