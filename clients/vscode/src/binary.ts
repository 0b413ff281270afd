import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

import { quote } from "./display";

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
export class ProgramNotFound extends Error {
  /** details says where it was searched, for the log. */
  constructor(
    message: string,
    readonly details: string,
  ) {
    super(message);
  }
}

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
    throw new ProgramNotFound(
      `The sidecar cannot start: ${quote(configured)} is not a program. Correct the setting "sandboxSidecar.path".`,
      `searched ${candidates.join(", ")}`,
    );
  }
  for (const dir of [...directories, ...search]) {
    const candidate = path.join(dir, name);
    if (await executable(candidate)) return candidate;
  }
  throw new ProgramNotFound(
    `The sidecar cannot start: ${name} was not found. Set "sandboxSidecar.path" or add it to $PATH.`,
    `searched ${directories.join(", ")} and $PATH`,
  );
}
