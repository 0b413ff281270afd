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
    const tried = Date.now();
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
    // A check that takes long is made less often: others wait for the processor.
    const pause = Math.min(2000, Math.max(50, 4 * (Date.now() - tried)));
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/**
 * A time limit in milliseconds for what begins now, for whoever can wait only for
 * a fixed time: five times as long as on an idle machine if for the last minute
 * some process has always waited for a processor.
 */
export function limit(seconds: number): number {
  return seconds * 1000 * (1 + (4 * pressure(/some avg10=\S+ avg60=(\S+)/)) / 100);
}

/**
 * For how many seconds some process has waited for a processor; see
 * Documentation/accounting/psi.rst of the kernel. 0 if the kernel counts nothing.
 */
function starved(): number {
  return pressure(/total=(\d+)/) / 1e6;
}

/** A figure of the kernel; 0 if it counts nothing. */
function pressure(figure: RegExp): number {
  try {
    return Number(figure.exec(readFileSync("/proc/pressure/cpu", "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
