import * as assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import * as path from "node:path";

import * as vscode from "vscode";

import { fromHome } from "../../src/home";
import { alive } from "../harness/processes";
import { until } from "../harness/until";
import { content, extension, folder, runTool, withSettings } from "./setting";

/**
 * Returns the text of a question as the user reads it, without Markdown
 * escapes.
 */
function asked({ confirmationMessages }: vscode.PreparedToolInvocation): { title: string; text: string } {
  const message = confirmationMessages?.message;
  assert.ok(message instanceof vscode.MarkdownString);
  const text = message.value.replaceAll("&nbsp;", " ").replace(/\\([^\w\s])/g, "$1");
  return { title: confirmationMessages?.title ?? "", text };
}

describe("the tool sandbox_run", () => {
  const secret = path.join(process.env["HOME"] ?? "", ".ssh", "id_test");
  before(extension);

  it("is offered to agents", () => {
    const tool = vscode.lm.tools.find(({ name }) => name === "sandbox_run");
    assert.ok(tool);
    assert.match(tool.description, /sandbox/);
  });

  it("returns output, exit code and sandbox status", async () => {
    const text = await runTool({ command: "echo out; echo err >&2; exit 3" });
    assert.match(text, /\nOutput, to the end of this text:\nout\nerr$/);
    assert.match(text, /^Exit code: 3\n/);
    assert.match(text, /Sandbox: (full|degraded)/);
  });

  it("runs in the first folder, or in cwd, and may write it", async () => {
    await runTool({ command: "pwd >here" });
    assert.equal(await content(path.join(folder(0), "here")), folder(0));
    await runTool({ command: "pwd >here", cwd: folder(1) });
    assert.equal(await content(path.join(folder(1), "here")), folder(1));
  });

  it("reports denials with the setting that would allow them", async () => {
    const home = process.env["HOME"] ?? "";
    const file = path.join(home, "notes", "list.txt");
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, "milk\n");
    const text = await runTool({ command: `for i in 1 2 3; do echo bread >>${file}; done; echo key >>${secret}` });
    const lines = text.split("\n").filter((line) => line.startsWith("Refused by the sandbox: "));
    const [notes, ...again] = lines.filter((line) => line.includes(`write "${file}" `));
    assert.deepEqual(again, [], text);
    assert.match(notes ?? "", new RegExp(`\\("(?:ba)?sh"\\), 3 times; .*"additional_read_write_paths": ".*notes`));
    const key = lines.find((line) => line.includes(`write "${secret}"`));
    assert.match(key ?? "", /SSH keys/);
    assert.doesNotMatch(key ?? "", /additional_read_write_paths/);
  });

  it("asks with the command, its directory and what the sandbox allows", async () => {
    const api = await extension();
    const { title, text } = asked(await api.toolConfirmation({ command: "echo *x*", cwd: folder(1) }));
    assert.equal(title, "Run in the sandbox?");
    assert.match(text, /```sh\necho \*x\*\n```/);
    assert.ok(text.includes(`In "${fromHome(folder(1))}".`), text);
    assert.match(text, /May write the project( and private caches)?\./);
    assert.match(text, /Network: everything\./);
    await withSettings({ allow_network: false }, async () => {
      await until("no network", async () =>
        asked(await api.toolConfirmation({ command: "true" })).text.includes("Network: none."),
      );
    });
  });

  it("reads ungranted files only if tools are not sandboxed", async () => {
    const refused = await runTool({ command: `cat ${secret}` });
    assert.match(refused, /Permission denied/);
    assert.doesNotMatch(refused, /a-private-key/);
    await withSettings({ apply_to: "terminal" }, async () => {
      const open = await until("tools that are not sandboxed", async () => {
        const text = await runTool({ command: `cat ${secret}` });
        return /Sandbox: off/.test(text) ? text : undefined;
      });
      assert.match(open, /a-private-key/);
    });
  });

  it("asks differently if tools are not sandboxed, or if it cannot run", async () => {
    const api = await extension();
    await withSettings({ apply_to: "terminal" }, async () => {
      const { text } = await until("the other question", async () => {
        const question = asked(await api.toolConfirmation({ command: "true" }));
        return question.title === "Run without a sandbox?" ? question : undefined;
      });
      assert.match(text, /the command gets all your rights/);
    });
    const { text } = asked(await api.toolConfirmation({ command: "true", cwd: "/" }));
    assert.match(text, /It will not run: .*outside of the open folders/);
    assert.doesNotMatch(text, /May write/);
  });

  it("runs unasked only if the user wants so and everything is enforced", async () => {
    const api = await extension();
    const settings = vscode.workspace.getConfiguration("sandboxSidecar");
    assert.ok((await api.toolConfirmation({ command: "true" })).confirmationMessages, "it does not ask by default");
    await settings.update("tool.autoApprove", true, vscode.ConfigurationTarget.Global);
    try {
      const full = /Sandbox: full/.test(await runTool({ command: "true" }));
      const unasked = await api.toolConfirmation({ command: "echo x >raced" });
      if (!full) {
        assert.match(asked(unasked).text, /You are asked because this is not fully enforced: /);
        return;
      }
      assert.equal(unasked.confirmationMessages, undefined);
      const file = path.join(folder(0), "raced");
      rmSync(file, { force: true });
      // Whatever changes in between, nobody was asked about that.
      await withSettings({ allow_network: false }, async () => {
        await assert.rejects(runTool({ command: "echo x >raced" }), /settings have changed/);
        assert.ok(!existsSync(file), "it ran");
      });
      await runTool({ command: "echo x >raced" }).catch(() => runTool({ command: "echo x >raced" }));
      assert.ok(existsSync(file), "it does not run any more");
      await withSettings({ apply_to: "terminal" }, async () => {
        assert.equal(asked(await api.toolConfirmation({ command: "true" })).title, "Run without a sandbox?");
      });
    } finally {
      await settings.update("tool.autoApprove", undefined, vscode.ConfigurationTarget.Global);
    }
  });

  it("cannot be told by a workspace to run unasked", async () => {
    const settings = vscode.workspace.getConfiguration("sandboxSidecar");
    await assert.rejects(async () => settings.update("tool.autoApprove", true, vscode.ConfigurationTarget.Workspace));
  });

  it("refuses directories outside of the open folders", async () => {
    await assert.rejects(runTool({ command: "true", cwd: process.env["HOME"] }), /outside of the open folders/);
    await assert.rejects(runTool({ command: "true", cwd: "/" }), /outside of the open folders/);
  });

  it("has an empty standard input", async () => {
    assert.match(await runTool({ command: "wc -c" }), /\n0$/);
  });

  it("cuts long output in the middle, and says so", async () => {
    const text = await runTool({ command: "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last" });
    assert.ok(text.length < 40_000, `${text.length} characters`);
    assert.match(text, /\nfirst\n/);
    assert.match(text, /bytes of output omitted here/);
    assert.match(text, /\nlast$/);
  });

  it("ends everything at the time limit", async () => {
    const file = path.join(folder(0), "slow");
    const text = await runTool({ command: `setsid sleep 1000 & echo $! >${file}; sleep 1000`, timeout: 6 });
    assert.match(text, /Timed out after 6 s/);
    const pid = Number(await content(file));
    assert.ok(pid > 1);
    await until("the sleeper is dead", () => !alive(pid));
  });

  it("ends everything on cancellation", async () => {
    const file = path.join(folder(0), "cancelled");
    rmSync(file, { force: true });
    const source = new vscode.CancellationTokenSource();
    const running = runTool({ command: `echo $$ >${file}; sleep 1000` }, source.token);
    const pid = Number(await content(file));
    assert.ok(alive(pid), "it has not even started");
    source.cancel();
    await assert.rejects(running);
    await until("the command is dead", () => !alive(pid));
  });

  it("shares processes and temporary files among the commands of an agent", async () => {
    const left = await runTool({ command: "sleep 1000 & echo $! >/tmp/left" });
    assert.match(left, /\nBackground: 1 of its processes still runs\.\n/);
    const text = await runTool({ command: "kill -0 $(cat /tmp/left) && cat /tmp/left" });
    assert.match(text, /^Exit code: 0\n/);
    const pid = Number(/\n(\d+)$/.exec(text)?.[1]);
    assert.ok(pid > 1 && alive(pid), text);
    // The user ends it. The only item of the list is selected.
    const ending = vscode.commands.executeCommand("sandboxSidecar.endBackground");
    await until("the agent's processes have ended", async () => {
      await vscode.commands.executeCommand("workbench.action.acceptSelectedQuickOpenItem");
      return !alive(pid);
    });
    await ending;
  });

  it("rejects invalid input", async () => {
    await assert.rejects(runTool({ command: "" }), /command/);
    await assert.rejects(runTool({ command: "true", cwd: "/does/not/exist" }), /no such directory/);
    assert.ok(!existsSync("/does/not/exist"));
  });
});
