import { existsSync } from "node:fs";
import { copyFile, mkdir, realpath } from "node:fs/promises";
import * as path from "node:path";

import type { Shell } from "./protocol.gen";

/** A program with its arguments. */
export interface Choice {
  program: string;
  args: string[];
}

/**
 * Returns the shell of a terminal: the user's setting, else the editor's, else
 * $SHELL. The editor's is unknown while a window starts. A link in the directory
 * links starts a session of its own, so the real shell is taken. On macOS,
 * terminals run login shells.
 */
export function chooseShell(
  configured: string[],
  editors: string,
  environment: string,
  platform: NodeJS.Platform,
  links?: string,
): Choice {
  const [program, ...args] = configured;
  if (program !== undefined) return { program, args };
  const isLink = (name: string) => links !== undefined && path.dirname(name) === links;
  const own = [editors, environment].find((name) => name !== "" && !isLink(name));
  const shell = isLink(editors) ? realShell(editors, own) : (own ?? "/bin/sh");
  return { program: shell, args: platform === "darwin" ? ["-l"] : [] };
}

/** Returns the real shell of a link. own is another shell of the user. */
function realShell(link: string, own: string | undefined): string {
  const name = path.basename(link);
  if (own !== undefined && (path.basename(own) === name || name === "sandbox-sh")) return own;
  const found = name === "sandbox-sh" ? undefined : shellDirectories.find((dir) => existsSync(path.join(dir, name)));
  return found === undefined ? (own ?? "/bin/sh") : path.join(found, name);
}

/** The usual places of shells, as the sidecar knows them. */
const shellDirectories = ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin"];

/**
 * Returns a command that starts a shell with VS Code's shell integration, as VS
 * Code's own terminals do. The editor then knows prompts, commands and
 * directories. Returns undefined for an unsupported shell, or if the session
 * cannot read the scripts.
 *
 * The command sets the scripts' variables itself, because the environment
 * filter removes them.
 */
export async function integrate(
  shell: Choice,
  scripts: string,
  storage: string,
  canRead: (file: string) => Promise<boolean>,
): Promise<Shell | undefined> {
  const login = shell.args.includes("-l") || shell.args.includes("--login");
  const hasTask = shell.args.some((arg) => arg !== "-l" && arg !== "--login" && arg !== "-i");
  if (hasTask) return undefined;
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

/**
 * zsh reads its files from one directory. It must not be temporary: sessions
 * could write it.
 */
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
