import * as assert from "node:assert/strict";
import { existsSync, rmSync } from "node:fs";
import * as path from "node:path";

import * as vscode from "vscode";

import { alive } from "../harness/processes";
import { until } from "../harness/until";
import { content, extension, folder, runTool, withSettings } from "./setting";

describe("the tool sandbox_run", () => {
  const secret = path.join(process.env["HOME"] ?? "", ".ssh", "id_test");
  before(extension);

  it("is offered to agents", () => {
    const tool = vscode.lm.tools.find(({ name }) => name === "sandbox_run");
    assert.ok(tool);
    assert.match(tool.description, /sandbox/);
  });

  it("returns output, exit code and what confined it", async () => {
    const text = await runTool({ command: "echo out; echo err >&2; exit 3" });
    assert.match(text, /^out\nerr\n/);
    assert.match(text, /Exit code: 3/);
    assert.match(text, /Sandbox: (full|degraded)/);
  });

  it("runs in the first folder, which it may write, or where it is told", async () => {
    await runTool({ command: "pwd >here" });
    assert.equal(await content(path.join(folder(0), "here")), folder(0));
    await runTool({ command: "pwd >here", cwd: folder(1) });
    assert.equal(await content(path.join(folder(1), "here")), folder(1));
  });

  it("cannot read what the settings do not grant, and can where they do not sandbox tools", async () => {
    const refused = await runTool({ command: `cat ${secret}` });
    assert.match(refused, /Permission denied/);
    assert.doesNotMatch(refused, /a-private-key/);
    await withSettings({ apply_to: "terminal" }, async () => {
      const open = await until("tools that are not sandboxed", async () => {
        const text = await runTool({ command: `cat ${secret}` });
        return /Sandbox: off/.test(text) ? text : undefined;
      });
      assert.match(open, /a-private-key/);
    });
  });

  it("does not work outside of the open folders, where it could write anything", async () => {
    await assert.rejects(runTool({ command: "true", cwd: process.env["HOME"] }), /outside of the open folders/);
    await assert.rejects(runTool({ command: "true", cwd: "/" }), /outside of the open folders/);
  });

  it("has an empty standard input", async () => {
    assert.match(await runTool({ command: "wc -c" }), /^0\n/);
  });

  it("cuts long output in the middle, and says so", async () => {
    const text = await runTool({ command: "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last" });
    assert.ok(text.length < 40_000, `${text.length} characters`);
    assert.match(text, /^first\n/);
    assert.match(text, /bytes of output are left out here/);
    assert.match(text, /last\n/);
  });

  it("ends everything at the time limit", async () => {
    const file = path.join(folder(0), "slow");
    const text = await runTool({ command: `setsid sleep 1000 & echo $! >${file}; sleep 1000`, timeout: 2 });
    assert.match(text, /took longer than 2 s/);
    const pid = Number(await content(file));
    assert.ok(pid > 1);
    await until("the sleeper is dead", () => !alive(pid));
  });

  it("ends everything when it is cancelled", async () => {
    const file = path.join(folder(0), "cancelled");
    rmSync(file, { force: true });
    const source = new vscode.CancellationTokenSource();
    const running = runTool({ command: `echo $$ >${file}; sleep 1000` }, source.token);
    const pid = Number(await content(file));
    assert.ok(alive(pid), "it has not even started");
    source.cancel();
    await assert.rejects(running);
    await until("the command is dead", () => !alive(pid));
  });

  it("tells of a mistake in its input", async () => {
    await assert.rejects(runTool({ command: "" }), /command/);
    await assert.rejects(runTool({ command: "true", cwd: "/does/not/exist" }), /no such directory/);
    assert.ok(!existsSync("/does/not/exist"));
  });
});
