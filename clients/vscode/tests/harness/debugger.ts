import * as path from "node:path";

import type { World } from "./world";

/** The type of the debugger that the extension of addDebugger brings. */
export const debuggerType = "sandbox-test";

/**
 * Installs an extension whose debugger starts a command line in a terminal, as
 * debuggers of programs that read their terminal do: by the request
 * runInTerminal of the Debug Adapter Protocol. Call it before the first start.
 */
export function addDebugger(world: World): void {
  const directory = world.directory("extensions/test.debugger-0.0.1");
  world.write(
    path.join(directory, "package.json"),
    JSON.stringify({
      name: "debugger",
      publisher: "test",
      version: "0.0.1",
      engines: { vscode: "^1.90.0" },
      main: "./main.js",
      activationEvents: [`onDebugResolve:${debuggerType}`],
      contributes: { debuggers: [{ type: debuggerType, label: "Test" }] },
    }),
  );
  world.write(path.join(directory, "main.js"), main);
}

const main = `
const vscode = require("vscode");

class Adapter {
  constructor() {
    this.sent = new vscode.EventEmitter();
    this.onDidSendMessage = this.sent.event;
    this.seq = 0;
  }
  send(message) { this.sent.fire({ seq: ++this.seq, ...message }); }
  handleMessage(message) {
    if (message.type === "response") return this.send({ type: "event", event: "terminated" });
    this.send({ type: "response", request_seq: message.seq, success: true, command: message.command });
    if (message.command === "initialize") this.send({ type: "event", event: "initialized" });
    if (message.command !== "launch") return;
    const { cwd, args } = message.arguments;
    const terminal = { kind: "integrated", title: "debugged", cwd, args };
    this.send({ type: "request", command: "runInTerminal", arguments: terminal });
  }
  dispose() {}
}

exports.activate = (context) => {
  const createDebugAdapterDescriptor = () => new vscode.DebugAdapterInlineImplementation(new Adapter());
  const factory = { createDebugAdapterDescriptor };
  context.subscriptions.push(vscode.debug.registerDebugAdapterDescriptorFactory("${debuggerType}", factory));
};
`;
