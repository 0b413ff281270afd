/**
 * Reports when the window has processed what an extension's terminal wrote. VS
 * Code has no flow control for such terminals. A program that prints without
 * end would fill its queues and delay key presses. Messages to the window keep
 * their order, so a request that is answered shows that all earlier output has
 * arrived.
 */
export class Renderer {
  private running: Promise<void> = Promise.resolve();
  private next: Promise<void> | undefined;

  /** ask sends a request to the window and awaits the answer. */
  constructor(private readonly ask: () => PromiseLike<unknown>) {}

  /**
   * Settles when the window has processed everything written before the call.
   * One request serves all callers.
   */
  caughtUp(): Promise<void> {
    return (this.next ??= this.running.then(async () => {
      this.next = undefined;
      this.running = Promise.resolve(this.ask()).then(
        () => undefined,
        () => undefined, // without a window there is nothing to wait for
      );
      await this.running;
    }));
  }
}
