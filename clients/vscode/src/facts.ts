import { readdir, readFile, stat } from "node:fs/promises";

/**
 * Whether a terminal is confined, as the kernel says. "starting": the
 * sidecar's program runs, but no confined shell does yet.
 */
export type Fact = "confined" | "open" | "starting";

/** How far below a terminal's process its shell is looked for. */
const maxDepth = 3;

async function programOf(pid: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(`/proc/${pid}/exe`);
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

async function childrenOf(pid: string): Promise<string[]> {
  try {
    const threads = await readdir(`/proc/${pid}/task`);
    const lists = await Promise.all(
      threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, "utf8").catch(() => "")),
    );
    return lists.flatMap((list) => list.split(" ").filter((child) => child !== ""));
  } catch {
    return [];
  }
}

/** Returns how many filters of system calls confine a process; 0 if unknown. */
async function filters(pid: string): Promise<number> {
  try {
    return Number(/^Seccomp_filters:\s*(\d+)$/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/**
 * Returns whether the shell of a terminal's process is confined; undefined if it
 * has ended, as a task's may while its terminal stays. That process
 * must be the sidecar's program, and another program just below it must have
 * more filters: in a container every process may have some. Linux only.
 */
export async function factOf(pid: number, program: string): Promise<Fact | undefined> {
  const running = await programOf(String(pid));
  if (running === undefined) return undefined;
  const own = await stat(program).then(
    ({ dev, ino }) => `${dev}:${ino}`,
    () => undefined,
  );
  if (running !== own) return "open";
  const outside = await filters(String(pid));
  let level = [String(pid)];
  for (let depth = 0; depth < maxDepth && level.length > 0; depth++) {
    const below = (await Promise.all(level.map(childrenOf))).flat();
    const programs = await Promise.all(below.map(programOf));
    const others = below.filter((_, i) => programs[i] !== undefined && programs[i] !== own);
    if ((await Promise.all(others.map(filters))).some((count) => count > outside)) return "confined";
    level = below.filter((_, i) => programs[i] === own);
  }
  return "starting";
}
