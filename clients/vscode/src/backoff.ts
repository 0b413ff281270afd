/** Decides how long to wait before restarting something that keeps ending. */
export class Backoff {
  private ends: number[] = [];

  /** Times are in milliseconds. Ends older than the window are forgotten. */
  constructor(
    private readonly first = 1000,
    private readonly maxEnds = 5,
    private readonly window = 180_000,
  ) {}

  /**
   * Records an end and returns the wait before the next start. Returns
   * undefined after too many ends: then the user must act.
   */
  ended(now: number): number | undefined {
    this.ends = this.ends.filter((at) => now - at < this.window);
    this.ends.push(now);
    return this.ends.length > this.maxEnds ? undefined : this.first * 2 ** (this.ends.length - 1);
  }

  /** Forgets all ends, because the user has acted. */
  reset(): void {
    this.ends = [];
  }
}
