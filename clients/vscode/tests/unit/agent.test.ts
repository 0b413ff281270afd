import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as path from "node:path";

const root = path.join(__dirname, "..", "..");
const read = (name: string) => readFileSync(path.join(root, name), "utf8");

interface Contributes {
  chatAgents: { path: string; when: string }[];
  languageModelTools: { name: string; toolReferenceName: string; when: string }[];
}

const { name, publisher, contributes } = JSON.parse(read("package.json")) as {
  name: string;
  publisher: string;
  contributes: Contributes;
};

/** VS Code's tools that start no program, with the tool set that has them. */
const harmless = [
  ...["read/problems", "read/readFile", "read/viewImage"],
  ...["search/changes", "search/codebase", "search/fileSearch", "search/listDirectory", "search/textSearch"],
  ...["edit/createDirectory", "edit/createFile", "edit/editFiles"],
  "todo",
];

/** Returns the entries of the list "tools" in an agent's header. */
function toolsOf(file: string): string[] {
  const header = /^---\n([^]*?)\n---\n/.exec(read(file))?.[1] ?? "";
  const [, list = ""] = header.split(/^tools:\n/m);
  return list.split("\n").map((line) => {
    const entry = /^ {2}- (\S+)$/.exec(line)?.[1];
    assert.ok(entry !== undefined, `not an entry of tools: ${line}`);
    return entry;
  });
}

describe("the agent \"Sandboxed\"", () => {
  const [agent] = contributes.chatAgents;
  const [tool] = contributes.languageModelTools;

  it("has our tool, and beside it only tools that start no program", () => {
    assert.ok(agent !== undefined && tool !== undefined);
    assert.equal(contributes.chatAgents.length, 1);
    const ours = `${publisher}.${name}/${tool.toolReferenceName}`;
    const [first, ...others] = toolsOf(agent.path);
    assert.equal(first, ours);
    assert.deepEqual(
      others.filter((other) => !harmless.includes(other)),
      [],
    );
    // Whole sets may grow by a tool that runs programs, and so does "*".
    assert.deepEqual(
      others.filter((other) => other.includes("*") || (!other.includes("/") && other !== "todo")),
      [],
    );
  });

  it("is there only where the tool is", () => assert.equal(agent?.when, tool?.when));

  it("names tools that this VS Code has", function () {
    const vscode = process.env["VSCODE_DIR"];
    if (vscode === undefined) throw new Error("VSCODE_DIR is not set: run the tests by clients/vscode/tests/run");
    const chat = path.join(vscode, "server/node_modules/code-server/lib/vscode/extensions/copilot/package.json");
    const { languageModelToolSets } = (
      JSON.parse(readFileSync(chat, "utf8")) as {
        contributes: { languageModelToolSets: { name: string; tools: string[] }[] };
      }
    ).contributes;
    const known = languageModelToolSets.flatMap((set) => set.tools.map((one) => `${set.name}/${one}`));
    assert.ok(known.includes("execute/runNotebookCell"), "the tool sets were not read");
    assert.deepEqual(
      harmless.filter((one) => one !== "todo" && !known.includes(one)),
      [],
    );
  });
});
