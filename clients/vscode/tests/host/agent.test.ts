import * as assert from "node:assert/strict";

import * as vscode from "vscode";

import { extension } from "./setting";

interface PromptFile {
  uri: { path: string };
  type: string;
  extensionId: string;
}

describe("the agent without unsandboxed tools", () => {
  before(extension);

  it("is known to the editor's chat", async () => {
    const files = await vscode.commands.executeCommand<PromptFile[]>("_listExtensionPromptFiles");
    const ours = files.filter(({ extensionId }) => extensionId.toLowerCase() === "sandbox-sidecar.sandbox-sidecar");
    assert.deepEqual(
      ours.map(({ type, uri }) => [type, uri.path.split("/").at(-1)]),
      [["agent", "sandboxed.agent.md"]],
    );
  });
});
