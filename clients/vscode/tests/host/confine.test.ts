import * as assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import * as path from "node:path";

import * as vscode from "vscode";

import { debuggerType } from "../harness/debugger";
import { until } from "../harness/until";
import { content, extension, folder } from "./setting";

const secret = path.join(process.env["HOME"] ?? "", ".ssh", "id_test");

describe("everything confined", () => {
  before(extension);
  afterEach(() => {
    for (const terminal of vscode.window.terminals) terminal.dispose();
  });

  /** Returns what another extension's terminal reads of the secret. */
  async function steal(name: string): Promise<string> {
    const [copy, done] = [path.join(folder(0), `${name}.copy`), path.join(folder(0), `${name}.done`)];
    vscode.window.createTerminal({ name, cwd: folder(0) }).sendText(`cat ${secret} > ${copy}; echo yes > ${done}`);
    await content(done);
    return readFileSync(copy, "utf8").trim();
  }

  it("means the terminals of other extensions, by the workspace's settings", async () => {
    assert.notEqual(await steal("before"), "");
    const file = vscode.workspace.workspaceFile?.fsPath ?? "";
    const before = readFileSync(file, "utf8");
    await vscode.commands.executeCommand("sandboxSidecar.confineAll", "workspace");
    try {
      assert.ok(readFileSync(file, "utf8").includes("automationProfile"));
      assert.equal(await steal("within"), "");
    } finally {
      await vscode.commands.executeCommand("sandboxSidecar.unconfineAll");
    }
    const { settings } = JSON.parse(readFileSync(file, "utf8")) as { settings?: object };
    assert.deepEqual(settings ?? {}, {}, before);
    assert.notEqual(await steal("after"), "");
  });

  it("is undone, except what the user has changed since", async () => {
    const key = (name: string) => `terminal.integrated.${name}.linux`;
    const settings = () => vscode.workspace.getConfiguration();
    const set = (name: string, value: unknown) => settings().update(key(name), value, vscode.ConfigurationTarget.Global);
    const own = (name: string) => settings().inspect(key(name))?.globalValue;
    await set("defaultProfile", "bash");
    await set("automationProfile", { path: "/bin/sh" });
    await vscode.commands.executeCommand("sandboxSidecar.confineAll", "user");
    assert.match(String(own("defaultProfile")), /\(sandbox\)$/);
    await set("automationProfile", { path: "/bin/dash" });
    await vscode.commands.executeCommand("sandboxSidecar.unconfineAll");
    assert.equal(own("defaultProfile"), "bash");
    assert.deepEqual(own("automationProfile"), { path: "/bin/dash" });
    assert.equal(own("profiles"), undefined);
    for (const name of ["defaultProfile", "automationProfile"]) await set(name, undefined);
  });

  it("means the terminals in which debuggers start programs", async () => {
    /** Returns what a debugged program reads of the secret. */
    const debug = async (name: string): Promise<string> => {
      const [copy, done] = [path.join(folder(0), `${name}.copy`), path.join(folder(0), `${name}.done`)];
      rmSync(done, { force: true });
      const args = ["sh", "-c", `cat ${secret} > "${copy}"; echo yes > "${done}"`];
      const configuration = { type: debuggerType, request: "launch", name, cwd: folder(0), args };
      assert.ok(await vscode.debug.startDebugging(vscode.workspace.workspaceFolders?.[0], configuration));
      await content(done);
      // Its terminal would be used again.
      for (const terminal of vscode.window.terminals) terminal.dispose();
      await until("no terminal", () => vscode.window.terminals.length === 0);
      return readFileSync(copy, "utf8").trim();
    };
    // The editor learns of changed profiles late.
    await until("a program that reads the secret", async () => (await debug("free")) !== "");
    await vscode.commands.executeCommand("sandboxSidecar.confineAll", "user");
    try {
      await until("a program that does not", async () => (await debug("confined")) === "");
      assert.equal(await debug("confined again"), "");
    } finally {
      await vscode.commands.executeCommand("sandboxSidecar.unconfineAll");
    }
  });

  it("means the commands that an agent runs by shell integration", async () => {
    await vscode.commands.executeCommand("sandboxSidecar.confineAll", "user");
    try {
      const terminal = vscode.window.createTerminal({ name: "agent", cwd: folder(0) });
      const integration = await until("shell integration", () => terminal.shellIntegration);
      const out = path.join(folder(0), "agent");
      const code = await new Promise<number | undefined>((resolve) => {
        vscode.window.onDidEndTerminalShellExecution((event) => {
          if (event.execution === execution) resolve(event.exitCode);
        });
        const execution = integration.executeCommand(`cat ${secret} > ${out}`);
      });
      assert.equal(code, 1);
      assert.equal(readFileSync(out, "utf8"), "");
      assert.ok(existsSync(out));
    } finally {
      await vscode.commands.executeCommand("sandboxSidecar.unconfineAll");
    }
  });
});
