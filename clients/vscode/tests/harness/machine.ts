import { execFileSync } from "node:child_process";

import { requireEnv } from "./world";

/** A protection as "sandbox-sidecar doctor" reports it. */
export interface Protection {
  name: string;
  status: "enforced" | "degraded" | "absent";
  mechanism: string;
  detail: string;
  fix?: string;
}

/** Returns this machine's protections, as a sidecar's program reports them. */
export function diagnose(program = requireEnv("SIDECAR_BINARY")): Protection[] {
  const out = execFileSync(program, ["doctor", "-json"], { encoding: "utf8", timeout: 120_000, cwd: "/" });
  return (JSON.parse(out) as { protections: Protection[] }).protections;
}

/** Returns the error of a program that changes a file outside the grants. */
export function refusedChange(): RegExp {
  const tree = diagnose().find(({ name }) => name === "file_tree");
  return tree?.status === "enforced" ? /Read-only file system/ : /Permission denied/;
}

/**
 * Returns the status bar's summary of this machine, for a project with the
 * default settings. An ordinary user may lack a protection that root has. In
 * CI, SIDECAR_MISSING must list each missing protection, as for the sidecar's
 * tests.
 */
export function expectedSummary(): "full" | "degraded" {
  // These do not count for "full". The kernel limits root nowhere.
  const uncounted = ["denials", "limits", "network"];
  const missing = diagnose().filter(({ name, status }) => status !== "enforced" && !uncounted.includes(name));
  const known = (process.env["SIDECAR_MISSING"] ?? "").split(" ");
  const unknown = missing.filter(({ name }) => !known.includes(name));
  if ((process.env["CI"] ?? "") !== "" && unknown.length > 0) {
    const names = unknown.map(({ name, detail }) => `${name} (${detail})`).join(", ");
    throw new Error(`this machine lacks ${names}, and SIDECAR_MISSING does not list it`);
  }
  return missing.length > 0 ? "degraded" : "full";
}

/**
 * Returns what the status bar says of a number of sandboxed terminals. A session
 * may have more than the machine promises to all, such as a process tracking
 * that nothing sandboxed escapes.
 */
export function expectedBar(terminals: string): RegExp {
  return new RegExp(expectedSummary() === "full" ? `Sandbox: ${terminals}` : `Sandbox: (partly, )?${terminals}`);
}

/**
 * Skips a test if this machine does not enforce a protection. In CI it fails
 * instead, unless SIDECAR_MISSING lists it.
 */
export function requireProtection(test: Mocha.Context, name: string): void {
  const found = diagnose().find((protection) => protection.name === name);
  if (found?.status === "enforced") return;
  if ((process.env["CI"] ?? "") !== "" && !(process.env["SIDECAR_MISSING"] ?? "").split(" ").includes(name))
    throw new Error(`this machine lacks ${name} (${found?.detail}), and SIDECAR_MISSING does not list it`);
  test.skip();
}
