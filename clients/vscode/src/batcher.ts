// Times are in milliseconds.

/** What comes within it comes together: a program that searches a tree meets many things at once. */
const batchDelay = 300;
/** A crowd is over when nothing has come for so long. The sidecar tells 20 things a second of a session that has more. */
const burstGap = 1000;
/** So many things within a span of time are told at once, one by one, where they are not of a crowd. What is more waits. */
const maxSingles = 2;
const singlesWindow = 10_000;
/** What waits is told after so long at the latest, and what comes after it no sooner than this later. */
const maxDelay = 5000;
/** That distance doubles as long as a crowd does not end, up to this. */
const maxInterval = 60_000;

/** Folds things that are to be told, so that few are told one by one, and many as a sum, whatever comes, and for however long. */
export class Batcher<T> {
  private waiting: T[] = [];
  private timer: NodeJS.Timeout | undefined;
  /** When the first and the last of those that wait came, and whether they go on with a crowd. */
  private first = 0;
  private last = -Infinity;
  private inBurst = false;
  /** When something was told at once. */
  private singlesAt: number[] = [];
  /** When what had waited was told, and how long the next that waits keeps from it. */
  private lastDelayed = -Infinity;
  private interval = maxDelay;

  constructor(
    private readonly notify: (item: T) => void,
    private readonly notifySummary: (all: T[]) => void,
  ) {}

  add(item: T): void {
    const now = Date.now();
    if (this.waiting.length === 0) {
      this.first = now;
      this.inBurst = now - this.last < burstGap;
    }
    this.last = now;
    this.waiting.push(item);
    this.timer ??= setTimeout(() => this.deliver(), batchDelay);
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
    if (all.length <= maxSingles) for (const item of all) this.notify(item);
    else this.notifySummary(all);
  }
}
