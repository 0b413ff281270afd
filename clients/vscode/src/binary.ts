import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { homedir } from "node:os";
import * as path from "node:path";

const name = "sandbox-sidecar";

/** Where the program may be, best first. */
export interface SearchLocations {
  /** What the user's setting says; empty: nothing. It is the only place then, so that a typing error is not covered up. */
  configured: string;
  /** Directories that may hold the program. */
  directories: string[];
  /** The variable PATH. */
  searchPath: string;
}

/** There is no program where one was looked for. */
export class ProgramNotFound extends Error {}

async function executable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}

/** Answers the absolute path of the sidecar's program. Raises ProgramNotFound, which says where it was looked for. */
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
