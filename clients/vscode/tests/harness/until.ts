/**
 * Waits until check returns a truthy value, and returns that. An empty text
 * counts as nothing: a shell creates its output file before the command writes
 * to it. The error names what is missing.
 */
export async function until<T>(what: string, check: () => T | Promise<T>, seconds = 60): Promise<NonNullable<T>> {
  const end = Date.now() + seconds * 1000;
  let last: unknown;
  for (;;) {
    try {
      const found = await check();
      if (found) return found;
      last = found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`waited ${seconds} s in vain: ${what} (last: ${String(last)})`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
