import type { Finding } from "./protocol.gen";

/** A file that changed while a session ran. */
export interface ChangedFile {
  path: string;
  change: string;
  why: string;
}

/** Returns each file of the findings, also those of a group. */
export function files(findings: Finding[]): ChangedFile[] {
  return findings.flatMap(({ path, others, change, why }) =>
    [path, ...(others ?? [])].map((one) => ({ path: one, change, why })),
  );
}
