import { constants } from "node:fs";
import { access, readdir, realpath } from "node:fs/promises";
import * as path from "node:path";

import { runInit } from "./initialize";

/**
 * Returns the directory in which "shell install" makes links; undefined without
 * a home. The program finds it by the same rule.
 */
export function linksDirectory(env: NodeJS.ProcessEnv): string | undefined {
  const [data, home] = [env["XDG_DATA_HOME"] ?? "", env["HOME"] ?? ""];
  if (path.isAbsolute(data)) return path.join(data, "sandbox-sidecar", "shells");
  return path.isAbsolute(home) ? path.join(home, ".local", "share", "sandbox-sidecar", "shells") : undefined;
}

/** Makes the links. Rejects if that fails. */
export async function makeLinks(program: string, directory: string): Promise<void> {
  await runInit(program, ["shell", "install", "--dir", directory]);
}

/**
 * Returns the link for a shell, or that for the user's own one if there is none
 * of its name.
 */
export async function linkFor(shell: string, directory: string): Promise<string> {
  const names = await readdir(directory);
  const name = path.basename(shell);
  return path.join(directory, names.includes(name) ? name : "sandbox-sh");
}

/** Reports whether the links lead to a program. */
export async function leadTo(directory: string, program: string): Promise<boolean> {
  try {
    return (await realpath(path.join(directory, "sandbox-sh"))) === (await realpath(program));
  } catch {
    return false;
  }
}

/**
 * Returns the shells that are links of this program: those in the directory, and
 * those in such a directory of another home, as settings from elsewhere have.
 */
export function linkedShells(shells: readonly string[], directory: string | undefined): string[] {
  const isLink = (shell: string) =>
    path.isAbsolute(shell) && (path.dirname(shell) === directory || /\/sandbox-sidecar\/shells\/[^/]+$/.test(shell));
  return [...new Set(shells.filter(isLink))];
}

/** Returns the first shell that cannot be run; undefined if all can. */
export async function missingOf(shells: readonly string[]): Promise<string | undefined> {
  for (const shell of shells) {
    try {
      await access(shell, constants.X_OK);
    } catch {
      return shell;
    }
  }
  return undefined;
}
