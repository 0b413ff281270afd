import { readdirSync, readFileSync } from "node:fs";

/** A process of this machine. */
export interface Process {
  pid: number;
  parent: number;
  command: string;
}

function read(pid: number): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z") return undefined; // dead, but not reaped yet
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    return { pid, parent: Number(fields[1]), command };
  } catch {
    return undefined; // it has ended meanwhile
  }
}

/** Returns the living processes. */
export function processes(): Process[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => read(Number(name)) ?? []);
}

/** Returns the processes whose command line contains a text. */
export function matching(text: string): Process[] {
  return processes().filter(({ command }) => command.includes(text));
}

/** Returns a process and its descendants. */
export function below(pid: number): Process[] {
  const all = processes();
  const found = all.filter((process) => process.pid === pid);
  for (const process of found) found.push(...all.filter(({ parent }) => parent === process.pid));
  return found;
}

/** Reports whether a process is alive. */
export function alive(pid: number): boolean {
  return read(pid) !== undefined;
}
