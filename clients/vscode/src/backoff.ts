/** Decides how long to wait before the next start of something that keeps ending. */
export class Backoff {
  private ends: number[] = [];

  /** Times are in milliseconds. Ends older than the window are forgotten. */
  constructor(
    private readonly first = 1000,
    private readonly maxEnds = 5,
    private readonly window = 180_000,
  ) {}

  /** Counts an end, and answers the wait before the next start; undefined: too many, a person must look. */
  ended(now: number): number | undefined {
    this.ends = this.ends.filter((at) => now - at < this.window);
    this.ends.push(now);
    return this.ends.length > this.maxEnds ? undefined : this.first * 2 ** (this.ends.length - 1);
  }

  /** A person has looked. */
  reset(): void {
    this.ends = [];
  }
}
