import { execFileSync } from "node:child_process";

import { given } from "./world";

/** A protection as "sandbox-sidecar doctor" reports it. */
export interface Diagnosis {
  name: string;
  status: "enforced" | "degraded" | "absent";
  mechanism: string;
  detail: string;
  fix?: string;
}

/** Answers what a program of the sidecar, or what starts one, says of this machine's protections. */
export function diagnose(program = given("SIDECAR_BINARY")): Diagnosis[] {
  const out = execFileSync(program, ["doctor", "-json"], { encoding: "utf8", timeout: 120_000, cwd: "/" });
  return (JSON.parse(out) as { protections: Diagnosis[] }).protections;
}

/**
 * Answers how the status bar sums this machine up, in a project with the
 * standard settings: an ordinary user may lack a protection that root has. In
 * CI each one that is lacking must stand in SIDECAR_MISSING, as for the tests
 * of the sidecar.
 */
export function standing(): "full" | "degraded" {
  const lacking = diagnose().filter(
    ({ name, status }) => status !== "enforced" && name !== "denials" && name !== "network",
  );
  const known = (process.env["SIDECAR_MISSING"] ?? "").split(" ");
  const unknown = lacking.filter(({ name }) => !known.includes(name));
  if ((process.env["CI"] ?? "") !== "" && unknown.length > 0) {
    throw new Error(
      `this machine lacks ${unknown.map(({ name, detail }) => `${name} (${detail})`).join(", ")}, and SIDECAR_MISSING does not list it`,
    );
  }
  return lacking.length > 0 ? "degraded" : "full";
}
