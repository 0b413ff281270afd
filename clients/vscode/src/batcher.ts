// Times are in milliseconds.

/**
 * Items that arrive within this time are delivered together. A program that
 * searches a tree causes many denials at once.
 */
const batchDelay = 300;
/**
 * A burst is over after this time without an item. The sidecar sends at most 20
 * denials a second for a session that has more.
 */
const burstGap = 1000;
/**
 * At most maxSingles items are delivered at once within singlesWindow, and none
 * of a burst. Further items wait.
 */
const maxSingles = 2;
const singlesWindow = 10_000;
/**
 * No item waits longer than this, and batches that waited are at least this far
 * apart.
 */
const maxDelay = 5000;
/** The interval between batches doubles while a burst lasts, up to this. */
const maxInterval = 60_000;

/** What one command of git does may take this long on a busy machine. */
export const commandDelay = 2000;

/**
 * Batches items for notifications. One is delivered alone, and what arrives
 * together as a summary, at a bounded rate however many arrive.
 */
export class Batcher<T> {
  private waiting: T[] = [];
  private timer: NodeJS.Timeout | undefined;
  /**
   * When the first and the last waiting item arrived, and whether they continue
   * a burst.
   */
  private first = 0;
  private last = -Infinity;
  private inBurst = false;
  /** When items were delivered singly. */
  private singlesAt: number[] = [];
  /**
   * When the last delayed batch was delivered, and the least time until the
   * next.
   */
  private lastDelayed = -Infinity;
  private interval = maxDelay;

  constructor(
    private readonly notify: (item: T) => void,
    private readonly notifySummary: (all: T[]) => void,
    private readonly delay = batchDelay,
  ) {}

  add(item: T): void {
    const now = Date.now();
    if (this.waiting.length === 0) {
      this.first = now;
      this.inBurst = now - this.last < burstGap;
    }
    this.last = now;
    this.waiting.push(item);
    this.timer ??= setTimeout(() => this.deliver(), this.delay);
  }

  private deliver(): void {
    this.timer = undefined;
    const now = Date.now();
    this.singlesAt = this.singlesAt.filter((at) => now - at < singlesWindow);
    if (!this.inBurst && this.singlesAt.length + this.waiting.length <= maxSingles) {
      this.singlesAt.push(...this.waiting.map(() => now));
      this.flush();
      return;
    }
    const rested = now - this.lastDelayed > maxInterval;
    const due = rested ? Math.min(this.last + burstGap, this.first + maxDelay) : this.lastDelayed + this.interval;
    if (now < due) {
      this.timer = setTimeout(() => this.deliver(), due - now);
      return;
    }
    this.interval = rested ? maxDelay : Math.min(2 * this.interval, maxInterval);
    this.lastDelayed = now;
    this.flush();
  }

  private flush(): void {
    const all = this.waiting;
    this.waiting = [];
    const [first] = all;
    if (all.length === 1 && first !== undefined) this.notify(first);
    else this.notifySummary(all);
  }
}
