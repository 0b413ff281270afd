import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

const name = "sandbox-sidecar";

/** Where to search for the program. */
export interface SearchLocations {
  /**
   * The user's setting; empty if unset. If it is set, nothing else is searched,
   * so that a typing error shows.
   */
  configured: string;
  /** Directories that may contain the program, best first. */
  directories: string[];
  /** The value of PATH. */
  searchPath: string;
}

/** The program was not found. */
export class ProgramNotFound extends Error {}

async function executable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

/**
 * Returns the absolute path of the sidecar's program. Throws ProgramNotFound.
 */
export async function findProgram(locations: SearchLocations): Promise<string> {
  const { configured, directories } = locations;
  const search = locations.searchPath.split(path.delimiter).filter((dir) => path.isAbsolute(dir));
  if (configured !== "") {
    const expanded = configured.startsWith("~/") ? path.join(homedir(), configured.slice(2)) : configured;
    const candidates = expanded.includes("/") ? [expanded] : search.map((dir) => path.join(dir, expanded));
    for (const candidate of candidates) {
      if (path.isAbsolute(candidate) && (await executable(candidate))) return candidate;
    }
    throw new ProgramNotFound(`find sidecar: ${configured} (setting sandboxSidecar.path): not an executable file`);
  }
  for (const dir of [...directories, ...search]) {
    const candidate = path.join(dir, name);
    if (await executable(candidate)) return candidate;
  }
  throw new ProgramNotFound(`find sidecar: no ${name} in ${directories.join(", ")} or in $PATH`);
}
