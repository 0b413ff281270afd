import * as assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import * as path from "node:path";

import * as vscode from "vscode";

import type { Api } from "../../src/extension";
import { until } from "../harness/until";

/** Returns the active extension. */
export async function extension(): Promise<Api> {
  const found = vscode.extensions.getExtension<Api>("sandbox-sidecar.sandbox-sidecar");
  assert.ok(found, "the extension is not there");
  return found.activate();
}

/** Returns the path of an open folder. */
export function folder(index: number): string {
  const found = vscode.workspace.workspaceFolders?.[index];
  assert.ok(found, `there is no folder ${index}`);
  return found.uri.fsPath;
}

/** The user's settings file. */
export const settingsFile = path.join(process.env["HOME"] ?? "", ".config", "sandbox-sidecar", "settings.json");

/** Replaces keys of the user's settings while run executes. */
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

/** Runs the agents' tool, and returns its result. */
export async function runTool(input: object, token?: vscode.CancellationToken): Promise<string> {
  const result = await vscode.lm.invokeTool("sandbox_run", { input, toolInvocationToken: undefined }, token);
  return result.content.map((part) => (part as vscode.LanguageModelTextPart).value).join("");
}

/** Waits until a file has content, and returns it. */
export async function content(file: string): Promise<string> {
  return until(`something in ${file}`, () => readFileSync(file, "utf8").trim());
}
