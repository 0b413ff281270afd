import { readdir } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

/** How many entries of a directory are offered. */
const maxEntries = 200;

/**
 * Returns what a typed path means: as it stands if it is absolute, starts with
 * "~/", or is no path; else relative to the project.
 */
export function resolved(typed: string, project: string): string {
  if (typed === "~" || /^(\/|~\/|abstract:)/.test(typed)) return typed === "~" ? "~/" : typed;
  return path.join(project, typed);
}

/**
 * Returns the paths that a typed one may be completed to, written as it is.
 * Directories end with a slash.
 */
export async function completions(typed: string, project: string): Promise<string[]> {
  const start = typed.slice(0, typed.lastIndexOf("/") + 1);
  const begun = typed.slice(start.length);
  const place = resolved(start === "" ? "./" : start, project).replace(/^~(?=\/)/, homedir());
  const entries = await readdir(place, { withFileTypes: true }).catch(() => []);
  return entries
    .filter(({ name }) => name.startsWith(begun) && (begun !== "" || start === "~/" || !name.startsWith(".")))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .slice(0, maxEntries)
    .map((entry) => `${start}${entry.name}${entry.isDirectory() ? "/" : ""}`);
}
