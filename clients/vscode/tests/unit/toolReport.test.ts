import * as assert from "node:assert/strict";

import { Excerpt } from "../../src/plain";
import type { DeniedParams } from "../../src/protocol.gen";
import { report, type Outcome } from "../../src/toolReport";

/** A command that has ended well in a full sandbox, but for what a test changes. */
function outcome(changes: Partial<Outcome> = {}): Outcome {
  const output = new Excerpt(1000);
  output.add(Buffer.from("out\r\n"));
  return { status: { exitCode: 0, signal: null }, output, denied: [], sandbox: undefined, timedOut: undefined, ...changes };
}

function refused(what: Partial<DeniedParams>): DeniedParams {
  return { sessionId: "1", access: "write", target: "/home/ada/notes/list.txt", count: 1, ...what };
}

/** The lines of a report that tell of refusals. */
function refusals(...denied: Partial<DeniedParams>[]): string[] {
  return report(outcome({ denied: denied.map(refused) }))
    .split("\n")
    .filter((line) => line.startsWith("Refused"));
}

describe("the tool's report", () => {
  it("is the output, then how the command has ended", () => {
    assert.equal(report(outcome()), "out\n\nExit code: 0");
    assert.equal(report(outcome({ status: { exitCode: null, signal: "SIGSEGV" } })), "out\n\nEnded by SIGSEGV.");
  });

  it("says that the time was up, and not by which signal", () => {
    const text = report(outcome({ status: { exitCode: null, signal: "SIGKILL" }, timedOut: 2 }));
    assert.match(text, /took longer than 2 s/);
    assert.doesNotMatch(text, /SIGKILL/);
  });

  it("says of a refusal who met it, and which setting would allow it", () => {
    const suggestion = { setting: "additional_read_write_paths", value: "~/notes" };
    assert.deepEqual(refusals({ process: { pid: 7, name: "bash" }, suggestion }), [
      'Refused by the sandbox: write /home/ada/notes/list.txt (bash); the user can allow it with the setting "additional_read_write_paths": "~/notes"',
    ]);
  });

  it("offers no setting where none would allow it, and gives the hint", () => {
    assert.deepEqual(refusals({ target: "/home/ada/.ssh/id", hint: "Credentials lie there." }), [
      "Refused by the sandbox: write /home/ada/.ssh/id; Credentials lie there.",
    ]);
  });

  it("has one line for the same thing, with how often it was refused", () => {
    assert.deepEqual(refusals({ count: 1 }, { access: "read" }, { count: 99 }), [
      "Refused by the sandbox: write /home/ada/notes/list.txt, 100 times",
      "Refused by the sandbox: read /home/ada/notes/list.txt",
    ]);
  });

  it("counts what would be too many lines, and what the sidecar has not told", () => {
    const lines = refusals(...Array.from({ length: 60 }, (_, i) => ({ target: `/home/ada/${i}`, ...(i === 59 ? { missed: 40 } : {}) })));
    assert.equal(lines.length, 21);
    assert.match(lines[19] ?? "", /\/home\/ada\/19$/);
    assert.equal(lines[20], "Refused by the sandbox: 80 more");
  });
});
