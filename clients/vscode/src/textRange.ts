/**
 * Returns the range to underline at a place in a file: up to the end of the
 * word, string or line. The range is [line, column, line, column], counted from
 * 0. line and column are counted from 1, and column in bytes of UTF-8. The
 * editor counts in UTF-16 code units.
 */
export function rangeOf(lines: readonly string[], line: number, column: number): [number, number, number, number] {
  const row = Math.max(0, Math.min(line, lines.length) - 1);
  const text = lines[row] ?? "";
  const start = Buffer.from(text, "utf8")
    .subarray(0, Math.max(0, column - 1))
    .toString("utf8").length;
  const rest = text.slice(start);
  const token = /^("(?:[^"\\]|\\.)*"?|[\w.+-]+|\S)/.exec(rest)?.[0] ?? "";
  return [row, start, row, start + token.length];
}
