/**
 * Turns terminal output into plain text. Escape sequences are removed. If a
 * program overwrote a line, as progress bars do, its last state stays.
 */
export function plain(text: string): string {
  return (
    text
      // Strings: OSC up to BEL, and OSC, DCS, SOS, PM, APC up to ST.
      .replace(/\u001b\][^\u0007\u001b]*\u0007/g, "")
      .replace(/\u001b[\]PX^_][^\u001b]*\u001b\\/g, "")
      // CSI, then every other sequence.
      .replace(/\u001b\[[0-?]*[ -/]*[@-~]/g, "")
      .replace(/\u001b[ -/]*[0-~]/g, "")
      .replace(/\r+\n/g, "\n")
      .replace(/[^\n]*\r(?!\n|$)/g, "")
      // A character and a backspace: bold text in manual pages.
      .replace(/[^\n\b]\u0008/g, "")
      .replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "")
  );
}

/** Keeps the beginning and the end of a byte stream of any length. */
export class Excerpt {
  private head: Buffer[] = [];
  private headSize = 0;
  private tail: Buffer[] = [];
  private tailSize = 0;
  private total = 0;

  /**
   * Keeps limit bytes: a quarter from the beginning, the rest from the end,
   * because results come last.
   */
  constructor(private readonly limit: number) {}

  add(bytes: Buffer): void {
    this.total += bytes.length;
    const free = Math.floor(this.limit / 4) - this.headSize;
    if (free > 0) {
      this.head.push(bytes.subarray(0, free));
      this.headSize += Math.min(free, bytes.length);
      bytes = bytes.subarray(free);
    }
    if (bytes.length === 0) return;
    this.tail.push(bytes);
    this.tailSize += bytes.length;
    if (this.tailSize > 2 * this.limit) this.trim();
  }

  private get tailMost(): number {
    return this.limit - Math.floor(this.limit / 4);
  }

  private trim(): void {
    if (this.tailSize <= this.tailMost) return;
    const kept = Buffer.concat(this.tail).subarray(-this.tailMost);
    this.tail = [kept];
    this.tailSize = kept.length;
  }

  /**
   * Returns the text, and how many bytes are missing in its middle. The text of
   * note replaces them.
   */
  text(note: (missing: number) => string): { text: string; missing: number } {
    this.trim();
    const missing = this.total - this.headSize - this.tailSize;
    if (missing === 0) return { text: plain(Buffer.concat([...this.head, ...this.tail]).toString("utf8")), missing };
    // A character that the cut splits is dropped on both sides.
    const head = new TextDecoder().decode(Buffer.concat(this.head), { stream: true });
    let tail = Buffer.concat(this.tail);
    while (tail.length > 0 && ((tail[0] ?? 0) & 0xc0) === 0x80) tail = tail.subarray(1);
    return { text: `${plain(head)}\n${note(missing)}\n${plain(tail.toString("utf8"))}`, missing };
  }
}
