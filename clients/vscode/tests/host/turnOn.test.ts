import * as assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";

import * as vscode from "vscode";

import { until } from "../harness/until";
import { extension, runTool, settingsFile } from "./setting";

describe("the command that turns the sandbox on", () => {
  it("writes the user's settings, and tools are sandboxed", async () => {
    await extension();
    const before = readFileSync(settingsFile, "utf8");
    rmSync(settingsFile);
    try {
      await vscode.commands.executeCommand("sandboxSidecar.turnOn", "tool");
      await until("the settings", () => existsSync(settingsFile));
      assert.match(readFileSync(settingsFile, "utf8"), /"apply_to": "tool"/);
      await until("a refusal", async () => /Permission denied/.test(await runTool({ command: "cat ~/.ssh/id_test" })));
    } finally {
      writeFileSync(settingsFile, before);
    }
  });
});
