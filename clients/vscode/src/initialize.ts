import { execFile } from "node:child_process";

import { sidecarEnvironment } from "./environment";

/** What the sandbox is turned on for, as "sandbox-sidecar init" takes it. */
export const applyTos = ["both", "tool", "terminal"] as const;
export type ApplyTo = (typeof applyTos)[number];

/** The arguments that turn the sandbox on. */
export function initArguments(applyTo: ApplyTo, settingsPath: string): string[] {
  const file = settingsPath === "" ? [] : ["--settings", settingsPath];
  return ["init", "--yes", "--apply-to", applyTo, ...file];
}

/**
 * Reports whether no settings file says if the sandbox is on. Then the user may
 * not know that it is off.
 */
export function undecided(origins: Readonly<Record<string, string>>): boolean {
  return (
    origins["enabled"] === "built-in defaults" &&
    origins["tool.enabled"] === undefined &&
    origins["terminal.enabled"] === undefined
  );
}

/** Runs the program, and returns its output. Rejects if it fails. */
export async function runInit(program: string, args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env: sidecarEnvironment(process.env), timeout: 30_000, cwd: "/" };
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(stderr === "" ? error.message : stderr.replace(/^sandbox-sidecar: /, "")));
    });
  });
}
