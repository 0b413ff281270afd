import { execFile } from "node:child_process";

import { doctorPage } from "./doctorText";
import { sidecarEnvironment } from "./environment";
import { pageOf, type Page } from "./page";

/** Runs a subcommand that prints text for people or JSON. */
async function output(program: string, args: string[]): Promise<{ stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      program,
      args,
      { env: sidecarEnvironment(process.env), timeout: 60_000, cwd: "/", maxBuffer: 64 << 20 },
      (error, stdout, stderr) => {
        // The exit status of doctor is 1 if a protection is missing; the output
        // names it.
        resolve({ stdout, stderr: stdout === "" && stderr === "" && error !== null ? error.message : stderr });
      },
    );
  });
}

/** Tries an attack on each protection. */
export async function doctor(program: string): Promise<Page> {
  const { stdout, stderr } = await output(program, ["doctor", "--json"]);
  return doctorPage(stdout, stderr);
}

/** What sessions have run, were refused and reached in the last seven days. */
export async function auditTrail(program: string): Promise<Page> {
  const { stdout, stderr } = await output(program, ["audit", "--since", "7d"]);
  return pageOf(stdout + stderr);
}
