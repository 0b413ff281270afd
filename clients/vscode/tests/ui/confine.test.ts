import * as assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync } from "node:fs";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";
import { expectedSummary } from "../harness/machine";
import { until } from "../harness/until";

const title = "Sandbox: Confine All Terminals, Tasks and Agents…";
const undoTitle = "Sandbox: Undo Confining All Terminals, Tasks and Agents";
/** What the user had. */
const own = {
  "terminal.integrated.automationProfile.linux": { path: "/bin/sh" },
  "terminal.integrated.profiles.linux": { mine: { path: "/bin/bash", args: ["--norc"] } },
};

describe("the command that confines everything", () => {
  const fixture = useFixture({
    settings: own,
    prepare: (world) => {
      world.write(path.join(world.home, "notes", "page"), "content-of-the-page\n");
      const command = `cat ${world.secret} > copy; echo yes > done`;
      const task = { label: "steal", type: "shell", command, group: { kind: "build", isDefault: true } };
      const tasks = [{ ...task, problemMatcher: [] }];
      world.write(path.join(world.project, ".vscode", "tasks.json"), JSON.stringify({ version: "2.0.0", tasks }));
    },
  });
  const userFile = () => path.join(fixture().world.root, "data", "User", "settings.json");
  const settings = () => JSON.parse(readFileSync(userFile(), "utf8")) as Record<string, unknown>;

  /** Opens a terminal by one of VS Code's own commands. */
  async function open(command: string): Promise<void> {
    const { window } = fixture();
    const before = await window.tabs();
    await window.command(command);
    await until("another terminal", async () => (await window.tabs()) > before);
    await until("a prompt", async () => (await window.terminal()).trimEnd().endsWith("ready$"));
  }

  const readSecret = async () => {
    const { window, world } = fixture();
    return window.run(`clear; cat ${world.secret}; echo status=$?`, /^status=\d+$/m);
  };

  /** Runs a task that copies the secret, and returns the copy. */
  async function task(): Promise<string> {
    const { window, world } = fixture();
    const [copy, done] = [path.join(world.project, "copy"), path.join(world.project, "done")];
    rmSync(copy, { force: true });
    rmSync(done, { force: true });
    await window.command("Tasks: Run Build Task");
    await until("the task's end", () => existsSync(done));
    return readFileSync(copy, "utf8").trim();
  }

  it("finds terminals and tasks that read a key", async () => {
    const { window, world } = fixture();
    await open("Terminal: Create New Terminal");
    assert.match(await readSecret(), new RegExp(world.secretText));
    await window.waitForStatus("0 of 1 terminal");
    assert.equal(await task(), world.secretText);
    await window.command("Terminal: Kill All Terminals");
    await until("no terminal", async () => (await window.tabs()) === 0);
  });

  it("shows what it writes, and writes nothing if it is cancelled", async () => {
    const { window } = fixture();
    const before = readFileSync(userFile(), "utf8");
    await window.command(title);
    const dialog = window.page.locator(".monaco-dialog-box", { hasText: "Confine all new terminals" });
    await dialog.waitFor();
    const text = await dialog.innerText();
    for (const key of ["profiles", "defaultProfile", "automationProfile", "agentHostProfile"])
      assert.ok(text.includes(`terminal.integrated.${key}.linux`), text);
    assert.ok(text.includes("chat.tools.terminal.terminalProfile.linux"), text);
    assert.ok(!text.includes("settingsSync"), text); // this VS Code has no Settings Sync; see confinement.test.ts
    if (process.env["SHOTS"] !== undefined)
      await window.page.screenshot({ path: path.join(process.env["SHOTS"], "confine-dialog.png") });
    await dialog.getByText("Cancel").click();
    assert.equal(readFileSync(userFile(), "utf8"), before);
  });

  it("confines terminals, splits and tasks", async () => {
    const { window } = fixture();
    await window.command(title);
    await window.page.locator(".monaco-dialog-box").getByText("Your Settings").click();
    await window.notification("New terminals, tasks and agents' terminals are confined.");
    await open("Terminal: Create New Terminal");
    assert.match(await readSecret(), /Permission denied/);
    await window.command("Terminal: Split Terminal");
    await window.waitForStatus("2 of 2 terminals");
    assert.equal(await task(), "");
    await window.newTerminal();
    await window.waitForStatus("3 of 3 terminals");
    if (process.env["SHOTS"] !== undefined)
      await window.page.screenshot({ path: path.join(process.env["SHOTS"], "confined.png") });
  });

  it("shows what terminals are refused", async () => {
    const { window, world } = fixture();
    await open("Terminal: Create New Terminal");
    await readSecret();
    const file = path.join(world.home, "notes", "list");
    await window.run(`clear; echo x >>${file}; echo status=$?`, /^status=\d+$/m);
    await window.answer(`refused to let "bash" create "${file}"`, "Copy Setting");
    await until("the setting in the clipboard", async () => /additional_read_write/.test(await window.clipboard()));
    // Sessions cannot find the socket.
    assert.match(await window.run("clear; echo [$SANDBOX_WINDOW]; echo do''ne", /^done$/m), /^\[\]$/m);
    await window.command("Terminal: Kill the Active Terminal Instance");
    await window.waitForStatus("3 of 3 terminals");
  });

  it("tells which terminals have old settings, and asks for new ones", async () => {
    const { window, world } = fixture();
    world.settings({ enabled: true, on_denied: "ask" });
    // One is the extension's own, and one may be ending. A slow shell may find no window.
    await window.notification(/[2-4] running terminals still use the old ones/);
    await open("Terminal: Create New Terminal");
    const reading = window.run(`clear; cat ${path.join(world.home, "notes", "page")}; echo re''ad`, /^read$/m);
    await window.answer('"cat" wants to read', "Answer…");
    await window.choose("Once");
    assert.match(await reading, /^content-of-the-page$/m);
    await window.command("Terminal: Kill the Active Terminal Instance");
    world.settings({ enabled: true });
    await window.waitForStatus("3 of 3 terminals");
  });

  it("keeps the editor's shell integration", async () => {
    const { window } = fixture();
    await open("Terminal: Create New Terminal");
    await window.type("ls /does/not/exist");
    await until(
      "a mark of failure",
      async () => (await window.page.locator(".terminal-wrapper.active .terminal-command-decoration.error").count()) > 0,
    );
  });

  it("warns of a terminal with another profile", async () => {
    const { window } = fixture();
    const before = await window.tabs();
    await window.command("Terminal: Create New Terminal (With Profile)");
    await window.choose("mine");
    await until("another terminal", async () => (await window.tabs()) > before);
    await window.waitForStatus("4 of 5 terminals");
    await until("a warning", async () => /warning/.test((await window.status.getAttribute("class")) ?? ""));
  });

  it("replaces that terminal by a sandboxed one", async () => {
    const { window, world } = fixture();
    await window.waitForStatus("4 of 5 terminals, not this one");
    await window.status.click();
    await window.choose("Replace the Terminal in Front…");
    await window.page.locator(".monaco-dialog-box").getByText("Replace", { exact: true }).click();
    await window.waitForStatus(/5 of 5 terminals(?!, not)/);
    await until("a prompt", async () => (await window.terminal()).trimEnd().endsWith("ready$"));
    assert.match(await readSecret(), /Permission denied/);
    assert.ok(!(await window.terminal()).includes(world.secretText));
  });

  it("is undone by one command", async () => {
    const { window, world } = fixture();
    await window.command(undoTitle);
    await window.notification("The settings are as before.");
    assert.deepEqual(Object.fromEntries(Object.entries(settings()).filter(([key]) => /rofiles?\./.test(key))), own);
    // A degraded sandbox is a warning, too.
    if (expectedSummary() === "full")
      await until("no warning", async () => !/warning/.test((await window.status.getAttribute("class")) ?? ""));
    await open("Terminal: Create New Terminal");
    assert.match(await readSecret(), new RegExp(world.secretText));
  });

  it("has nothing to undo then", async () => {
    const { window } = fixture();
    await window.command(undoTitle);
    await window.notification("Nothing was confined by this command");
  });
});

describe("settings of another machine that confine everything", () => {
  const shell = "/nonexistent/.local/share/sandbox-sidecar/shells/bash";
  const fixture = useFixture({
    settings: {
      "terminal.integrated.profiles.linux": { "bash (sandbox)": { path: shell } },
      "terminal.integrated.defaultProfile.linux": "bash (sandbox)",
    },
  });

  it("are said to confine nothing here", async () => {
    const { window } = fixture();
    await window.notification("Terminals are not confined:");
    await window.command("Notifications: Clear All Notifications");
  });
});

describe("a workspace that is not trusted", () => {
  const fixture = useFixture({
    settings: { "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never" },
  });

  it("is confined by the user's settings only", async () => {
    const { window } = fixture();
    await window.page.locator(".statusbar-item", { hasText: "Restricted Mode" }).waitFor();
    await window.command(title);
    const dialog = window.page.locator(".monaco-dialog-box", { hasText: "Confine all new terminals" });
    await dialog.getByText("Your Settings").waitFor();
    assert.equal(await dialog.getByText("Workspace Settings").count(), 0);
    await dialog.getByText("Cancel").click();
  });
});
