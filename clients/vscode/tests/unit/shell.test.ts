import * as assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";

import { chooseShell, integrate } from "../../src/shell";

describe("the shell", () => {
  it("is the user's choice, else the editor's, else the environment's", () => {
    assert.deepEqual(chooseShell(["fish", "-P"], "/bin/bash", "/bin/zsh", "linux"), { program: "fish", args: ["-P"] });
    assert.deepEqual(chooseShell([], "/bin/bash", "/bin/zsh", "linux"), { program: "/bin/bash", args: [] });
    assert.deepEqual(chooseShell([], "", "/bin/zsh", "linux"), { program: "/bin/zsh", args: [] });
    assert.deepEqual(chooseShell([], "", "", "linux"), { program: "/bin/sh", args: [] });
  });

  it("is a real shell, never a link that starts a session", () => {
    const of = (editors: string, environment: string) => chooseShell([], editors, environment, "linux", "/l").program;
    assert.equal(of("/l/bash", ""), "/bin/bash");
    assert.equal(of("/l/bash", "/usr/bin/zsh"), "/bin/bash");
    assert.equal(of("/l/zsh", "/opt/zsh"), "/opt/zsh");
    assert.equal(of("/l/sandbox-sh", "/usr/bin/zsh"), "/usr/bin/zsh");
    assert.equal(of("/l/sandbox-sh", "/l/zsh"), "/bin/sh");
    assert.equal(of("", "/l/zsh"), "/bin/sh");
  });

  it("is a login shell on macOS, as in other terminals there", () => {
    assert.deepEqual(chooseShell([], "/bin/zsh", "", "darwin"), { program: "/bin/zsh", args: ["-l"] });
  });
});

describe("shell integration", () => {
  let scripts: string;
  let storage: string;
  const everything = () => Promise.resolve(true);
  const nothing = () => Promise.resolve(false);

  beforeEach(() => {
    const dir = mkdtempSync(path.join(realpathSync(tmpdir()), "shell-"));
    scripts = path.join(dir, "it's scripts");
    storage = path.join(dir, "storage");
    mkdirSync(scripts);
    for (const name of ["bash.sh", "rc.zsh", "env.zsh", "profile.zsh", "login.zsh"])
      writeFileSync(path.join(scripts, `shellIntegration-${name}`), "");
    writeFileSync(path.join(scripts, "shellIntegration.fish"), "");
  });
  afterEach(() => rmSync(path.dirname(scripts), { recursive: true }));

  it("gives bash its script, with the variables that the script wants", async () => {
    writeFileSync(
      path.join(scripts, "shellIntegration-bash.sh"),
      'echo "injection=$VSCODE_INJECTION login=$VSCODE_SHELL_LOGIN"; exit\n',
    );
    for (const [args, login] of [
      [[], ""],
      [["-l"], "1"],
    ] as const) {
      const shell = await integrate({ program: "/bin/bash", args: [...args] }, scripts, storage, everything);
      assert.ok(shell);
      const text = execFileSync(shell.program, [...(shell.args ?? []), "-i"], { encoding: "utf8", stdio: "pipe" });
      assert.match(text, new RegExp(`injection=1 login=${login}$`, "m"));
    }
  });

  it("gives zsh a directory with its files, and passes on the user's own", async () => {
    const shell = await integrate({ program: "/bin/zsh", args: [] }, scripts, storage, everything);
    assert.ok(shell);
    const print = shell.args?.map((arg) => (arg === "/bin/zsh" ? "/bin/sh" : arg === "-i" ? "-c" : arg)) ?? [];
    const env = { HOME: "/home/ada" };
    const text = execFileSync(shell.program, [...print, 'echo "$ZDOTDIR and $USER_ZDOTDIR"'], {
      encoding: "utf8",
      env,
    });
    assert.equal(text, `${path.join(storage, "zsh")} and /home/ada\n`);
  });

  it("gives fish its script", async () => {
    const shell = await integrate({ program: "/usr/bin/fish", args: [] }, scripts, storage, everything);
    assert.ok(shell?.args?.some((arg) => arg.startsWith("source '")));
  });

  it("is off if the session cannot read its scripts", async () => {
    for (const program of ["/bin/bash", "/bin/zsh", "/usr/bin/fish"]) {
      assert.equal(await integrate({ program, args: [] }, scripts, storage, nothing), undefined);
    }
  });

  it("is off for shells with a task and for unknown shells", async () => {
    assert.equal(
      await integrate({ program: "/bin/bash", args: ["-c", "make"] }, scripts, storage, everything),
      undefined,
    );
    assert.equal(await integrate({ program: "/usr/bin/nu", args: [] }, scripts, storage, everything), undefined);
  });

  it("is off if the scripts are missing", async () => {
    assert.equal(
      await integrate({ program: "/bin/bash", args: [] }, "/does/not/exist", storage, everything),
      undefined,
    );
    assert.equal(await integrate({ program: "/bin/zsh", args: [] }, "/does/not/exist", storage, everything), undefined);
  });
});
