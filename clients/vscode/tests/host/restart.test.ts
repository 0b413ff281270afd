import * as assert from "node:assert/strict";
import * as path from "node:path";

import * as vscode from "vscode";

import { alive } from "../harness/processes";
import { until } from "../harness/until";
import { content, extension, folder, runTool } from "./setting";

describe("the sidecar", () => {
  it("restarts after it was killed, and its sessions are gone", async () => {
    const api = await extension();
    const file = path.join(folder(0), "sleeper");
    const terminal = await api.openTerminal(folder(0), folder(0));
    terminal.sendText(`sleep 1000 & echo $! >${file}`);
    const sleeper = Number(await content(file));
    const before = api.sidecarPid();
    assert.ok(before !== undefined);
    process.kill(before, "SIGKILL");
    await until("the sleeper is dead", () => !alive(sleeper));
    const after = await until("another sidecar", () => {
      const pid = api.sidecarPid();
      return pid !== before ? pid : undefined;
    });
    assert.ok(alive(after));
    assert.match(await runTool({ command: "echo again" }), /^Output, to the end of this text:\nagain$/m);
    terminal.dispose();
  });

  it("is one process for parallel requests", async () => {
    const api = await extension();
    const before = api.sidecarPid();
    await Promise.all([1, 2, 3].map((n) => runTool({ command: `echo ${n}` })));
    assert.equal(api.sidecarPid(), before);
  });

  it("is replaced by a restart", async () => {
    const api = await extension();
    const before = api.sidecarPid();
    assert.ok(before !== undefined);
    await vscode.commands.executeCommand("sandboxSidecar.restart");
    assert.notEqual(api.sidecarPid(), before);
    assert.ok(!alive(before));
  });
});
