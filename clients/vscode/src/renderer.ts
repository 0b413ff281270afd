/**
 * Tells when the window has taken over what an extension's terminal wrote. VS
 * Code has no flow control for such terminals: it takes what it is given, and a
 * program that prints without end would fill its queues until keys are answered
 * late. Messages to the window keep their order, so the answer to a question
 * that was asked after the writing says that the window has come so far.
 */
export class Renderer {
  private running: Promise<void> = Promise.resolve();
  private next: Promise<void> | undefined;

  /** ask goes to the window and back. */
  constructor(private readonly ask: () => PromiseLike<unknown>) {}

  /** Settles when the window has taken over everything that was written before the call. One question serves all who wait. */
  caughtUp(): Promise<void> {
    return (this.next ??= this.running.then(async () => {
      this.next = undefined;
      this.running = Promise.resolve(this.ask()).then(
        () => undefined,
        () => undefined, // no window, nothing to wait for
      );
      await this.running;
    }));
  }
}
