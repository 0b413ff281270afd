import * as assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import * as path from "node:path";

import * as vscode from "vscode";

import type { Api } from "../../src/extension";
import { until } from "../harness/until";

/** The extension itself, active. */
export async function extension(): Promise<Api> {
  const found = vscode.extensions.getExtension<Api>("sandbox-sidecar.sandbox-sidecar");
  assert.ok(found, "the extension is not there");
  return found.activate();
}

/** The folders that are open. */
export function folder(index: number): string {
  const found = vscode.workspace.workspaceFolders?.[index];
  assert.ok(found, `there is no folder ${index}`);
  return found.uri.fsPath;
}

/** The user's settings of the sandbox. */
export const settingsFile = path.join(process.env["HOME"] ?? "", ".config", "sandbox-sidecar", "settings.json");

/** Replaces keys of the user's settings for as long as run takes. */
export async function withSettings(keys: Record<string, unknown>, run: () => Promise<void>): Promise<void> {
  const before = readFileSync(settingsFile, "utf8");
  const settings = JSON.parse(before) as { terminal: { sandbox: Record<string, unknown> } };
  Object.assign(settings.terminal.sandbox, keys);
  writeFileSync(settingsFile, JSON.stringify(settings));
  try {
    await run();
  } finally {
    writeFileSync(settingsFile, before);
  }
}

/** Runs the agent's tool, and answers what an agent gets. */
export async function runTool(input: object, token?: vscode.CancellationToken): Promise<string> {
  const result = await vscode.lm.invokeTool("sandbox_run", { input, toolInvocationToken: undefined }, token);
  return result.content.map((part) => (part as vscode.LanguageModelTextPart).value).join("");
}

/** Waits until a file holds something, and answers it. */
export async function content(file: string): Promise<string> {
  return until(`something in ${file}`, () => readFileSync(file, "utf8").trim());
}
