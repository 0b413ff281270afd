import { execFile } from "node:child_process";

import { sidecarEnvironment } from "./environment";

/** Runs a subcommand that prints text for people, and returns its output. */
async function output(program: string, args: string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      program,
      args,
      { env: sidecarEnvironment(process.env), timeout: 60_000, cwd: "/", maxBuffer: 64 << 20 },
      (error, stdout, stderr) => {
        // The exit status of doctor is 1 if a protection is missing; the output
        // names it.
        resolve(stdout === "" && stderr === "" && error !== null ? error.message : `${stdout}${stderr}`);
      },
    );
  });
}

/** Tries an attack on each protection. */
export async function doctor(program: string): Promise<string> {
  return output(program, ["doctor"]);
}

/** What sessions have run, were refused and reached in the last seven days. */
export async function auditTrail(program: string): Promise<string> {
  return output(program, ["audit", "--since", "7d"]);
}
