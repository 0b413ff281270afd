import { copyFile, mkdir, realpath } from "node:fs/promises";
import * as path from "node:path";

import type { Shell } from "./protocol.gen";

/** What a terminal runs, and how it is called. */
export interface Choice {
  program: string;
  args: string[];
}

/**
 * Answers the shell of a terminal: the user's own choice, else the editor's,
 * which is not known yet while a window is being set up, else that of the
 * environment. Terminals of macOS run login shells.
 */
export function chooseShell(
  configured: string[],
  editors: string,
  environment: string,
  platform: NodeJS.Platform,
): Choice {
  const [program, ...args] = configured;
  if (program !== undefined) return { program, args };
  const shell = [editors, environment].find((name) => name !== "") ?? "/bin/sh";
  return { program: shell, args: platform === "darwin" ? ["-l"] : [] };
}

/**
 * Answers how to start a shell so that it tells the editor of its prompts,
 * commands and directories, as VS Code's own terminals do: with VS Code's
 * scripts. undefined where that is not known of this shell, or where the
 * scripts cannot be read from inside.
 *
 * A shell in between sets the variables that the scripts want, because the
 * filter of variables lets none of them in.
 */
export async function integrate(
  shell: Choice,
  scripts: string,
  storage: string,
  canRead: (file: string) => Promise<boolean>,
): Promise<Shell | undefined> {
  const login = shell.args.includes("-l") || shell.args.includes("--login");
  if (shell.args.some((arg) => arg !== "-l" && arg !== "--login" && arg !== "-i")) return undefined; // it is to do something of its own
  const variables = ["VSCODE_INJECTION=1"];
  const through = (args: string[], more: string[] = []): Shell => ({
    program: "/bin/sh",
    args: ["-c", `export ${[...variables, ...more].join(" ")}; exec "$0" "$@"`, shell.program, ...args],
  });
  switch (path.basename(shell.program)) {
    case "bash": {
      const script = await readable(path.join(scripts, "shellIntegration-bash.sh"), canRead);
      return script === undefined ? undefined : through(["--init-file", script], login ? ["VSCODE_SHELL_LOGIN=1"] : []);
    }
    case "zsh": {
      const directory = await zshDirectory(scripts, path.join(storage, "zsh"));
      if (directory === undefined || !(await canRead(path.join(directory, ".zshrc")))) return undefined;
      const args = login ? ["-il"] : ["-i"];
      return through(args, ['USER_ZDOTDIR="${ZDOTDIR:-$HOME}"', `ZDOTDIR=${quote(directory)}`]);
    }
    case "fish": {
      const script = await readable(path.join(scripts, "shellIntegration.fish"), canRead);
      return script === undefined
        ? undefined
        : through([...(login ? ["-l"] : []), "--init-command", `source ${quote(script)}`]);
    }
    default:
      return undefined;
  }
}

async function readable(file: string, canRead: (file: string) => Promise<boolean>): Promise<string | undefined> {
  try {
    const real = await realpath(file);
    return (await canRead(real)) ? real : undefined;
  } catch {
    return undefined;
  }
}

/** zsh takes its files from one directory. Not from a temporary one, which sessions could write. */
async function zshDirectory(scripts: string, directory: string): Promise<string | undefined> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    for (const [from, to] of [
      ["rc", ".zshrc"],
      ["env", ".zshenv"],
      ["profile", ".zprofile"],
      ["login", ".zlogin"],
    ] as const) {
      await copyFile(path.join(scripts, `shellIntegration-${from}.zsh`), path.join(directory, to));
    }
    return await realpath(directory);
  } catch {
    return undefined;
  }
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
