import * as path from "node:path";

import * as vscode from "vscode";

import { currentFolder } from "./folders";
import type { Terminals } from "./terminals";

/** The type of a task in tasks.json. */
const type = "sandbox";

/**
 * Runs tasks of the type "sandbox": a command line that never runs without a
 * sandbox, whatever the settings say.
 */
export class Tasks implements vscode.TaskProvider {
  constructor(
    context: vscode.ExtensionContext,
    private readonly terminals: Terminals,
  ) {
    context.subscriptions.push(vscode.tasks.registerTaskProvider(type, this));
  }

  provideTasks(): vscode.Task[] {
    return []; // only the user knows the commands
  }

  resolveTask(task: vscode.Task): vscode.Task | undefined {
    const { command, cwd } = task.definition as vscode.TaskDefinition & { command?: unknown; cwd?: unknown };
    const scope = task.scope;
    const folder = typeof scope === "object" ? scope : currentFolder();
    if (typeof command !== "string" || command === "" || folder === undefined) return undefined;
    const project = folder.uri.fsPath;
    const directory = path.resolve(project, typeof cwd === "string" ? cwd : ".");
    const execution = new vscode.CustomExecution(() =>
      Promise.resolve(this.terminals.task(command, directory, project)),
    );
    // The editor finds the task again by its definition, so that stays.
    return new vscode.Task(task.definition, scope ?? folder, task.name, type, execution, task.problemMatchers);
  }
}
