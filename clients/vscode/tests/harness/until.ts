/**
 * Waits until look answers something truthy, and answers that. An empty text is
 * none: a shell has made its file before the command that fills it runs. what
 * says what is missing otherwise.
 */
export async function until<T>(what: string, look: () => T | Promise<T>, seconds = 60): Promise<NonNullable<T>> {
  const end = Date.now() + seconds * 1000;
  let last: unknown;
  for (;;) {
    try {
      const found = await look();
      if (found) return found;
      last = found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`waited ${seconds} s in vain: ${what} (last: ${String(last)})`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
