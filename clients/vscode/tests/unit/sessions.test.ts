import * as assert from "node:assert/strict";
import { PassThrough } from "node:stream";

import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";

import {
  CloseRequest,
  ExitedNotification,
  ReviewedNotification,
  type CloseResult,
  type Finding,
} from "../../src/protocol.gen";
import { Sessions } from "../../src/sessions";

const finding: Finding = { path: "/p/Makefile", change: "changed", why: "make runs it", message: "check it" };
const closed: CloseResult = { exitCode: 0, signal: null, killed: 0, remaining: 0, elapsedMs: 1 };

/** The sessions of a sidecar that sends these notifications, and how often they report a review. */
async function reviews(notified: boolean, result: CloseResult): Promise<Finding[][]> {
  const toEditor = new PassThrough();
  const toSidecar = new PassThrough();
  const editor = createMessageConnection(new StreamMessageReader(toEditor), new StreamMessageWriter(toSidecar));
  const sidecar = createMessageConnection(new StreamMessageReader(toSidecar), new StreamMessageWriter(toEditor));
  const got: Finding[][] = [];
  const sessions = new Sessions(
    editor,
    () => undefined,
    (findings) => got.push(findings),
    () => undefined,
  );
  const answered = new Promise<void>((resolve) => {
    sidecar.onRequest(CloseRequest, async ({ sessionId }) => {
      if (sessionId !== "s") return closed;
      if (notified) await sidecar.sendNotification(ReviewedNotification, { sessionId: "s", review: [finding] });
      resolve();
      return result;
    });
  });
  editor.listen();
  sidecar.listen();
  await sidecar.sendNotification(ExitedNotification, { sessionId: "s", exitCode: 0, signal: null });
  await answered;
  // The answer to a later request comes after that to the first.
  await sessions.close("other");
  editor.dispose();
  sidecar.dispose();
  return got;
}

describe("the review of a session that ended by itself", () => {
  it("is reported once, whether the notification has it, the answer, or both", async () => {
    const answer = { ...closed, review: [finding] };
    assert.deepEqual(await reviews(true, answer), [[finding]]);
    assert.deepEqual(await reviews(false, answer), [[finding]]);
    assert.deepEqual(await reviews(false, closed), []);
  });
});
