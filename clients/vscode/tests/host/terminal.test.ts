import * as assert from "node:assert/strict";
import { existsSync } from "node:fs";
import * as path from "node:path";

import * as vscode from "vscode";

import { alive } from "../harness/processes";
import { until } from "../harness/until";
import { content, extension, folder, withSettings } from "./setting";

describe("a sandboxed terminal", () => {
  let api: Awaited<ReturnType<typeof extension>>;
  before(async () => (api = await extension()));
  afterEach(() => {
    for (const terminal of vscode.window.terminals) terminal.dispose();
  });

  const open = (index: number) => api.openTerminal(folder(index), folder(index));

  it("runs what is typed", async () => {
    const file = path.join(folder(0), "typed");
    (await open(0)).sendText(`echo typed >${file}`);
    assert.equal(await content(file), "typed");
  });

  it("writes its own folder and no other", async () => {
    const [own, other, done] = [
      path.join(folder(1), "own"),
      path.join(folder(0), "other"),
      path.join(folder(1), "done"),
    ];
    (await open(1)).sendText(`echo yes >${own}; echo no >${other}; echo done >${done}`);
    assert.equal(await content(done), "done");
    assert.equal(await content(own), "yes");
    assert.ok(!existsSync(other), "it wrote the other folder");
  });

  it("is named after its shell, and a shield says that it is sandboxed", async () => {
    const terminal = await open(0);
    await until("the name", () => terminal.name === "bash");
    const { iconPath } = terminal.creationOptions;
    assert.ok(iconPath instanceof vscode.ThemeIcon && iconPath.id === "shield");
  });

  it("reports its exit code", async () => {
    const terminal = await open(0);
    terminal.sendText("exit 7");
    await until("the end", () => terminal.exitStatus !== undefined);
    assert.equal(terminal.exitStatus?.code, 7);
  });

  it("ends everything started in it", async () => {
    const file = path.join(folder(0), "daemon");
    const terminal = await open(0);
    terminal.sendText(`setsid sh -c 'echo $$ >${file}; exec sleep 1000' &`);
    const pid = Number(await content(file));
    assert.ok(alive(pid), `process ${pid} is not alive`);
    terminal.dispose();
    await until("the daemon is dead", () => !alive(pid));
  });

  it("is marked as stale while the settings differ", async () => {
    const terminal = await open(0);
    const file = path.join(folder(0), "started");
    terminal.sendText(`echo yes >${file}`);
    await content(file);
    await withSettings({ allow_network: false }, async () => {
      await until("the mark", () => terminal.name.includes("old settings"));
    });
    await until("no mark", () => !terminal.name.includes("old settings"));
  });

  it("is named as not sandboxed if the settings do not require a sandbox", async () => {
    await withSettings({ apply_to: "tool" }, async () => {
      await until("the settings count", async () => {
        const terminal = await open(0);
        const off = await until("not sandboxed", () => terminal.name === "bash (not sandboxed)", 3).catch(() => false);
        terminal.dispose();
        return off;
      });
    });
  });
});
