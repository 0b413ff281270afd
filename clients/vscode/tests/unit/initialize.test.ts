import * as assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";

import { initArguments, runInit, undecided } from "../../src/initialize";

describe("turning the sandbox on", () => {
  it("runs init, for the file that counts", () => {
    assert.deepEqual(initArguments("tool", ""), ["init", "--yes", "--apply-to", "tool"]);
    assert.deepEqual(initArguments("both", "/a b/s.json"), [
      "init",
      "--yes",
      "--apply-to",
      "both",
      "--settings",
      "/a b/s.json",
    ]);
  });

  it("is offered only if no settings file says whether it is on", () => {
    const off = { enabled: "built-in defaults", apply_to: "built-in defaults" };
    assert.equal(undecided(off), true);
    assert.equal(undecided({ ...off, enabled: "/home/ada/settings.json" }), false);
    assert.equal(undecided({ ...off, "tool.enabled": "/home/ada/settings.json" }), false);
    assert.equal(undecided({ ...off, "terminal.enabled": "editor" }), false);
    assert.equal(undecided({}), false);
  });

  it("returns what the program printed, or why it failed", async () => {
    const dir = mkdtempSync(path.join(tmpdir(), "init."));
    const program = path.join(dir, "program");
    try {
      writeFileSync(program, '#!/bin/sh\n[ "$4" = tool ] && echo "$*" && exit\necho "sandbox-sidecar: no" >&2\nexit 1\n');
      chmodSync(program, 0o755);
      assert.equal(await runInit(program, initArguments("tool", "")), "init --yes --apply-to tool\n");
      await assert.rejects(runInit(program, initArguments("both", "")), /^Error: no\n$/);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
