import { homedir } from "node:os";

/** Shortens the home directory, as settings may. */
export function fromHome(target: string): string {
  const home = `${homedir()}/`;
  return target.startsWith(home) ? `~/${target.slice(home.length)}` : target;
}
