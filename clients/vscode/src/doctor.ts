import { execFile } from "node:child_process";

import { sidecarEnvironment } from "./environment";

/**
 * Runs "sandbox-sidecar doctor", which tries an attack on each protection, and
 * returns its output.
 */
export async function doctor(program: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      program,
      ["doctor"],
      { env: sidecarEnvironment(process.env), timeout: 60_000, cwd: "/" },
      (error, stdout, stderr) => {
        // The exit status is 1 if a protection is missing; the output names it.
        resolve(stdout === "" && stderr === "" && error !== null ? error.message : `${stdout}${stderr}`);
      },
    );
  });
}
