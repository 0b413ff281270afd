// Times are in milliseconds.

/** What comes within it comes together: a program that searches a tree meets many things at once. */
const moment = 300;
/** A crowd is over when nothing has come for so long. The sidecar tells 20 things a second of a session that has more. */
const quiet = 1000;
/** So many things within a span of time are told at once, one by one, where they are not of a crowd. What is more waits. */
const few = 2;
const span = 10_000;
/** What waits is told after so long at the latest, and what comes after it no sooner than this later. */
const timeout = 5000;
/** That distance doubles as long as a crowd does not end, up to this. */
const longest = 60_000;

/** Folds things that are to be told, so that few are told one by one, and many as a sum, whatever comes, and for however long. */
export class Folding<T> {
  private waiting: T[] = [];
  private timer: NodeJS.Timeout | undefined;
  /** When the first and the last of those that wait came, and whether they go on with a crowd. */
  private first = 0;
  private last = -Infinity;
  private ofCrowd = false;
  /** When something was told at once. */
  private atOnce: number[] = [];
  /** When what had waited was told, and how long the next that waits keeps from it. */
  private late = -Infinity;
  private distance = timeout;

  constructor(
    private readonly tell: (what: T) => void,
    private readonly tellSum: (all: T[]) => void,
  ) {}

  add(what: T): void {
    const now = Date.now();
    if (this.waiting.length === 0) {
      this.first = now;
      this.ofCrowd = now - this.last < quiet;
    }
    this.last = now;
    this.waiting.push(what);
    this.timer ??= setTimeout(() => this.look(), moment);
  }

  private look(): void {
    this.timer = undefined;
    const now = Date.now();
    this.atOnce = this.atOnce.filter((at) => now - at < span);
    if (!this.ofCrowd && this.atOnce.length + this.waiting.length <= few) {
      this.atOnce.push(...this.waiting.map(() => now));
      this.flush();
      return;
    }
    const afresh = now - this.late > longest;
    const due = afresh ? Math.min(this.last + quiet, this.first + timeout) : this.late + this.distance;
    if (now < due) {
      this.timer = setTimeout(() => this.look(), due - now);
      return;
    }
    this.distance = afresh ? timeout : Math.min(2 * this.distance, longest);
    this.late = now;
    this.flush();
  }

  private flush(): void {
    const all = this.waiting;
    this.waiting = [];
    if (all.length <= few) for (const what of all) this.tell(what);
    else this.tellSum(all);
  }
}
