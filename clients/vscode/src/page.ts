import { text } from "./display";
import { fromHome } from "./home";

/** The width of a page in columns: an editor beside the side bar at 1024 pixels. */
export const width = 71;

/** A line of a file. */
export interface Place {
  file: string;
  line: number;
}

/** Where a place stands in a page. */
export interface Link extends Place {
  /** The first character, and the one after the last. */
  start: number;
  end: number;
}

/** Wraps text at spaces to lines of a length. */
export function wrap(words: string, length: number): string[] {
  const lines: string[] = [];
  for (const word of words.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= length) lines.push(`${lines.pop() ?? ""} ${word}`);
    else lines.push(word);
  }
  return lines;
}

/** Shows a place; the link leads to the real one. */
function shown({ file, line }: Place): string {
  return `${text(fromHome(file))}:${line}`;
}

/**
 * A read-only document: headings, and below them lines that are wrapped. Only
 * what was added as a place is a link, whatever the text looks like.
 */
export class Page {
  readonly links: Link[] = [];
  private readonly all: string[] = [];
  private length = 0;

  /** The whole text. */
  get text(): string {
    return this.all.join("\n");
  }

  /** Adds a line as it is. */
  line(line = ""): this {
    this.all.push(line);
    this.length += line.length + 1;
    return this;
  }

  /** Adds an empty line and a heading. */
  heading(title: string): this {
    return this.line().line(title.toUpperCase());
  }

  /** Adds text, wrapped; lines after the first are indented further. */
  words(words: string, indent: number, hanging = indent): this {
    const [first = "", ...rest] = wrap(words, width - hanging);
    this.line(" ".repeat(indent) + first);
    for (const line of rest) this.line(" ".repeat(hanging) + line);
    return this;
  }

  /**
   * Adds columns, and a place or words behind them. If that is too long, it goes
   * into the next line.
   */
  row(columns: string, behind: Place | string | undefined, indent: number, next: number): this {
    const before = " ".repeat(indent) + columns;
    if (behind === undefined) return this.line(before.trimEnd());
    const end = typeof behind === "string" ? behind : shown(behind);
    const fits = before.length + end.length <= width;
    if (!fits) this.line(before.trimEnd());
    if (!fits && typeof behind === "string") return this.words(end, next);
    const lead = fits ? before : " ".repeat(next);
    if (typeof behind !== "string") {
      const start = this.length + lead.length;
      this.links.push({ file: behind.file, line: behind.line, start, end: start + end.length });
    }
    return this.line(lead + end);
  }
}

/** A page of a text that is laid out already. */
export function pageOf(lines: string): Page {
  const page = new Page();
  for (const line of lines.split("\n")) page.line(line);
  return page;
}
