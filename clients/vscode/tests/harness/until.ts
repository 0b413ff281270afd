import { readFileSync } from "node:fs";

/**
 * Waits until check returns a truthy value, and returns that. An empty text
 * counts as nothing: a shell creates its output file before the command writes
 * to it. The error names what is missing. The time is prolonged by that in which
 * a processor was missing, to five times as long at most.
 */
export async function until<T>(what: string, check: () => T | Promise<T>, seconds = 60): Promise<NonNullable<T>> {
  const begun = Date.now();
  const before = starved();
  let last: unknown;
  for (;;) {
    try {
      const found = await check();
      if (found) return found;
      last = found;
    } catch (error) {
      last = error;
    }
    const took = (Date.now() - begun) / 1000;
    if (took > seconds && took > seconds + Math.min(starved() - before, 4 * seconds))
      throw new Error(`waited ${Math.round(took)} s in vain: ${what} (last: ${String(last)})`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * For how many seconds some process has waited for a processor; see
 * Documentation/accounting/psi.rst of the kernel. 0 if the kernel counts nothing.
 */
function starved(): number {
  try {
    return Number(/total=(\d+)/.exec(readFileSync("/proc/pressure/cpu", "utf8"))?.[1] ?? 0) / 1e6;
  } catch {
    return 0;
  }
}
