import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as path from "node:path";

import { Backoff } from "../../src/backoff";
import { sidecarEnvironment } from "../../src/environment";
import { profileTitle } from "../../src/profileTitle";
import { Renderer } from "../../src/renderer";
import { rangeOf } from "../../src/textRange";

describe("the back-off", () => {
  it("waits longer each time, and gives up", () => {
    const backoff = new Backoff(1000, 3, 60_000);
    assert.deepEqual(
      [0, 1, 2, 3].map((at) => backoff.ended(at)),
      [1000, 2000, 4000, undefined],
    );
  });

  it("forgets old ends", () => {
    const backoff = new Backoff(1000, 3, 60_000);
    backoff.ended(0);
    assert.equal(backoff.ended(100_000), 1000);
  });

  it("starts again after a reset", () => {
    const backoff = new Backoff(1000, 1, 60_000);
    backoff.ended(0);
    assert.equal(backoff.ended(1), undefined);
    backoff.reset();
    assert.equal(backoff.ended(2), 1000);
  });
});

describe("the sidecar's environment", () => {
  it("is the editor's without the variables of VS Code", () => {
    const own = {
      PATH: "/bin",
      ELECTRON_RUN_AS_NODE: "1",
      VSCODE_IPC_HOOK_CLI: "/run/x",
      HOME: "/home/ada",
      GONE: undefined,
    };
    assert.deepEqual(sidecarEnvironment(own), { PATH: "/bin", HOME: "/home/ada" });
  });
});

describe("a place in a settings file", () => {
  const lines = ["{", '  "größe": "x", "enabeld": true'];

  it("is counted in bytes by the sidecar and in UTF-16 by the editor", () => {
    const column = Buffer.byteLength('  "größe": "x", ', "utf8") + 1;
    const [line, start, , end] = rangeOf(lines, 2, column);
    assert.equal(line, 1);
    assert.equal(lines[1]?.slice(start, end), '"enabeld"');
  });

  it("may be outside of a file that has changed", () => {
    assert.deepEqual(rangeOf([], 7, 3), [0, 0, 0, 0]);
    assert.deepEqual(rangeOf(["ab"], 7, 30), [0, 2, 0, 2]);
  });
});

describe("the renderer", () => {
  it("sends one request for all callers, after the previous answer", async () => {
    const answers: (() => void)[] = [];
    const renderer = new Renderer(() => new Promise<void>((resolve) => answers.push(resolve)));
    const done: string[] = [];
    const wait = (name: string) => renderer.caughtUp().then(() => done.push(name));
    const first = wait("first");
    await Promise.resolve();
    const rest = [wait("second"), wait("third")];
    await new Promise(setImmediate);
    assert.equal(answers.length, 1);
    answers[0]?.();
    await first;
    await new Promise(setImmediate);
    assert.deepEqual(done, ["first"]);
    assert.equal(answers.length, 2);
    answers[1]?.();
    await Promise.all(rest);
    assert.deepEqual(done, ["first", "second", "third"]);
  });

  it("settles without a window", async () => {
    await new Renderer(() => Promise.reject(new Error("no window"))).caughtUp();
  });
});

describe("the title of the terminal profile", () => {
  it("is the same in every language, as the user's settings name it", () => {
    const manifest = JSON.parse(readFileSync(path.join(__dirname, "..", "..", "package.json"), "utf8")) as {
      contributes: { terminal: { profiles: { title: string }[] } };
    };
    assert.deepEqual(
      manifest.contributes.terminal.profiles.map(({ title }) => title),
      [profileTitle],
    );
  });
});
