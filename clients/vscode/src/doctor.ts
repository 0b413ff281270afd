import { execFile } from "node:child_process";

import { sidecarEnvironment } from "./environment";

/** Runs the program's own check of this machine, which tries an attack on each protection, and answers what it prints. */
export async function doctor(program: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      program,
      ["doctor"],
      { env: sidecarEnvironment(process.env), timeout: 60_000, cwd: "/" },
      (error, stdout, stderr) => {
        // It exits with 1 where something is missing; what it printed says what.
        resolve(stdout === "" && stderr === "" && error !== null ? error.message : `${stdout}${stderr}`);
      },
    );
  });
}
