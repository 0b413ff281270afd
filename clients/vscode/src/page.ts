import { text } from "./display";
import { fromHome } from "./home";

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

/** Shows a place; the link leads to the real one. */
function shown({ file, line }: Place): string {
  return `${text(fromHome(file))}:${line}`;
}

/**
 * A read-only document: headings, and below them lines. The editor wraps them
 * for its own width; lines that are wrapped here would be wrapped twice. Only
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

  /** Adds text with an indentation, which the editor keeps when it wraps. */
  words(words: string, indent: number): this {
    return this.line(" ".repeat(indent) + words);
  }

  /** Adds columns, and a place or words behind them. */
  row(columns: string, behind: Place | string, indent: number): this {
    const before = " ".repeat(indent) + columns;
    if (typeof behind === "string") return this.line((before + behind).trimEnd());
    const end = shown(behind);
    const start = this.length + before.length;
    this.links.push({ file: behind.file, line: behind.line, start, end: start + end.length });
    return this.line(before + end);
  }
}

/** A page of a text that is laid out already. */
export function pageOf(lines: string): Page {
  const page = new Page();
  for (const line of lines.split("\n")) page.line(line);
  return page;
}
