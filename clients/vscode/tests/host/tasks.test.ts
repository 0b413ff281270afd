import * as assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import * as path from "node:path";

import * as vscode from "vscode";

import { until } from "../harness/until";
import { extension, folder, settingsFile, withSettings } from "./setting";

describe("a task of the type sandbox", () => {
  before(extension);

  /** Runs a command as a task of tasks.json, and returns its exit code. */
  async function run(command: string): Promise<number | undefined> {
    const key = JSON.stringify([{ label: "the task", type: "sandbox", command }]);
    const tasks = vscode.workspace.getConfiguration("tasks", vscode.Uri.file(folder(0)));
    await tasks.update("tasks", JSON.parse(key), vscode.ConfigurationTarget.WorkspaceFolder);
    try {
      const task = await until("the task", async () =>
        (await vscode.tasks.fetchTasks({ type: "sandbox" })).find(
          ({ name, definition }) => name === "the task" && definition["command"] === command,
        ),
      );
      const ended = new Promise<number | undefined>((resolve) => {
        const listener = vscode.tasks.onDidEndTaskProcess((event) => {
          if (event.execution.task.name !== "the task") return;
          listener.dispose();
          resolve(event.exitCode);
        });
      });
      await vscode.tasks.executeTask(task);
      return await ended;
    } finally {
      await tasks.update("tasks", undefined, vscode.ConfigurationTarget.WorkspaceFolder);
    }
  }

  it("runs in the sandbox, and has its exit code", async () => {
    const copy = path.join(folder(0), "copy");
    const home = path.resolve(path.dirname(settingsFile), "..", "..");
    assert.equal(await run(`cat ${home}/.ssh/id_test >${copy}; echo $? >>${copy}; exit 3`), 3);
    assert.equal(readFileSync(copy, "utf8"), "1\n");
  });

  it("does not run if terminals are not sandboxed", async () => {
    const file = path.join(folder(0), "ran");
    await withSettings({ apply_to: "tool" }, async () => {
      await until("it is refused", async () => (await run(`touch ${file}x`)) === 1);
      assert.equal(await run(`touch ${file}`), 1);
    });
    assert.ok(!existsSync(file));
  });
});
