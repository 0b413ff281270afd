import type { MessageConnection } from "vscode-jsonrpc/node";

import {
  AckNotification,
  CloseGroupRequest,
  CloseRequest,
  DeniedNotification,
  ExitedNotification,
  OutputNotification,
  ReviewedNotification,
  SpawnRequest,
  type CloseGroupResult,
  type CloseResult,
  type DeniedParams,
  type ExitStatus,
  type Finding,
  type SpawnParams,
  type SpawnResult,
} from "./protocol.gen";
import { notify } from "./sidecar";

/** Receives the events of a session. */
export interface Listener {
  /**
   * Raw bytes, in order. The promise settles when they are consumed; until then
   * the sidecar sends only a limited amount.
   */
  output(bytes: Buffer): Promise<void> | undefined;
  /**
   * Called after the last output, with what the sandbox may have to do with a failure, and how many processes the
   * session has left in its group.
   */
  exited(status: ExitStatus, hints: string[], background: number): void;
  /** Called if the sidecar has ended, and the session with it. */
  lost(): void;
  /** Called for each denial in the session. */
  denied(denial: DeniedParams): void;
}

/** The sessions of one sidecar process. */
export class Sessions {
  private readonly listeners = new Map<string, Listener>();
  private readonly consumed = new Map<string, number>();
  /** Ended sessions whose review is known before they are closed. */
  private readonly reviewed = new Set<string>();

  constructor(
    private readonly connection: MessageConnection,
    private readonly onDenied: (denial: DeniedParams) => void,
    private readonly onReviewed: (findings: Finding[]) => void,
    onExited: (sessionId: string) => void,
  ) {
    connection.onNotification(OutputNotification, ({ sessionId, data }) => {
      const bytes = Buffer.from(data, "base64");
      const consumption = this.listeners.get(sessionId)?.output(bytes);
      // Output without a listener counts as consumed, too.
      const acknowledge = () => this.acknowledge(sessionId, bytes.length);
      if (consumption === undefined) acknowledge();
      else void consumption.then(acknowledge, acknowledge);
    });
    connection.onNotification(ExitedNotification, ({ sessionId, exitCode, signal, hints, background }) => {
      const listener = this.listeners.get(sessionId);
      this.listeners.delete(sessionId);
      listener?.exited({ exitCode, signal }, hints ?? [], background ?? 0);
      onExited(sessionId);
      // Nobody queries the session after its end, so the sidecar may forget it.
      void this.close(sessionId);
    });
    connection.onNotification(ReviewedNotification, ({ sessionId, review }) => {
      this.reviewed.add(sessionId);
      this.onReviewed(review);
    });
    connection.onNotification(DeniedNotification, (denial) => {
      this.listeners.get(denial.sessionId)?.denied(denial);
      this.onDenied(denial);
    });
  }

  /** The number of running sessions. */
  get size(): number {
    return this.listeners.size;
  }

  /**
   * Starts a session. The listener gets no event before the response, and none
   * if the start fails.
   */
  async spawn(params: SpawnParams & { sessionId: string }, listener: Listener): Promise<SpawnResult> {
    this.listeners.set(params.sessionId, listener);
    try {
      return await this.connection.sendRequest(SpawnRequest, params);
    } catch (error) {
      this.listeners.delete(params.sessionId);
      throw error;
    }
  }

  /**
   * Ends a session. Returns undefined if it was closed before, or if the
   * sidecar has ended.
   */
  async close(sessionId: string, graceMs?: number): Promise<CloseResult | undefined> {
    try {
      const result = await this.connection.sendRequest(
        CloseRequest,
        graceMs === undefined ? { sessionId } : { sessionId, graceMs },
      );
      // The answer repeats what the notification has said.
      if (result.review !== undefined && !this.reviewed.has(sessionId)) this.onReviewed(result.review);
      return result;
    } catch {
      return undefined;
    } finally {
      this.reviewed.delete(sessionId);
    }
  }

  /** Ends all sandboxes that the sessions of a project share under a name. */
  async closeGroup(group: string, projectDir: string): Promise<CloseGroupResult> {
    const result = await this.connection.sendRequest(CloseGroupRequest, { group, projectDir });
    // Between its sessions, background processes may have changed files, too.
    if (result.review !== undefined) this.onReviewed(result.review);
    return result;
  }

  /** Notifies every session that the sidecar has ended. */
  notifyLost(): void {
    const lost = [...this.listeners.values()];
    this.listeners.clear();
    for (const listener of lost) listener.lost();
  }

  private acknowledge(sessionId: string, bytes: number): void {
    const before = this.consumed.get(sessionId);
    this.consumed.set(sessionId, (before ?? 0) + bytes);
    if (before !== undefined) return;
    // One message acknowledges everything consumed in one turn of the event
    // loop.
    setImmediate(() => {
      const sum = this.consumed.get(sessionId) ?? 0;
      this.consumed.delete(sessionId);
      notify(this.connection, AckNotification, { sessionId, bytes: sum });
    });
  }
}
