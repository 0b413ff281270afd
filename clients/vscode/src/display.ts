/**
 * Escapes untrusted text for display, by the rules of the Go package display.
 * Messages from the sidecar are escaped already. This is for text that only the
 * editor knows, such as folder names, and for data from the sidecar.
 */

const maxText = 120;
const maxLine = 2000;
/** A name is not shortened to less, as it would say nothing. */
const minName = 12;
/** How many combining marks one letter may carry. */
const maxMarks = 2;

/**
 * Text on one line, shortened in the middle. Nothing in it moves the cursor, is
 * invisible, or acts as Markdown, an icon or a link.
 */
export function text(s: string): string {
  return shorten(escape(s, true), maxText);
}

/**
 * A path of at most limit characters. Directories in its middle go first, so
 * that its name stays.
 */
export function shortPath(s: string, limit: number): string {
  return pathOf(escape(s, true), limit);
}

function pathOf(whole: string, limit: number): string {
  if (Array.from(whole).length <= limit) return whole;
  const parts = whole.split("/");
  for (let i = 2; i < parts.length; i++) {
    const rest = `${parts[0] ?? ""}/…/${parts.slice(i).join("/")}`;
    if (Array.from(rest).length <= limit) return rest;
  }
  return parts.length === 1 ? shorten(whole, limit) : `…/${shorten(parts.at(-1) ?? "", limit - 2)}`;
}

/** Text in quotation marks, for use within a sentence. */
export function quote(s: string, limit = maxText): string {
  const escaped = escape(s, true)
    .replaceAll('"', '\\"')
    .replace(/[\u201c-\u201f\u2033\u02ba\u02ee\u3003\uff02]/g, (mark) => code(mark.codePointAt(0) ?? 0));
  return `"${shorten(escaped, limit)}"`;
}

/**
 * A whole sentence on one line. A sentence without unsafe characters is
 * returned unchanged.
 */
export function line(s: string): string {
  return shorten(escape(s, false), maxLine);
}

/**
 * Text of about limit characters. First what follows the first sentence goes,
 * then names in quotation marks are shortened, the longest first. No word goes:
 * a sentence that is cut in its middle says nothing, or something else.
 */
export function brief(s: string, limit: number): string {
  const whole = line(s);
  if (Array.from(whole).length <= limit) return whole;
  let sentence = firstSentence(whole);
  const names = (sentence.match(/"(?:[^"\\]|\\.)*"/gu) ?? []).sort((a, b) => b.length - a.length);
  for (const name of names) {
    const over = Array.from(sentence).length - limit;
    if (over <= 0) break;
    const room = Math.max(minName, Array.from(name).length - 2 - over);
    sentence = sentence.replace(name, () => `"${shorterName(name.slice(1, -1), room)}"`);
  }
  return sentence;
}

/** A name that is escaped already. Of a path, directories in its middle go. */
function shorterName(name: string, limit: number): string {
  return /^[~/]/.test(name) ? pathOf(name, limit) : shorten(name, limit);
}

/** The text up to the first full stop outside of quotation marks. */
function firstSentence(s: string): string {
  for (const { 0: part, index } of s.matchAll(/"(?:[^"\\]|\\.)*"|[.?!](?= )/gu))
    if (!part.startsWith('"')) return s.slice(0, index + 1);
  return s;
}

/** Lines of code. Only invisible characters are escaped. */
export function lines(s: string): string {
  return Array.from(s)
    .map((c) => (c === "\n" || c === "\t" || visible(c) ? c : code(c.codePointAt(0) ?? 0)))
    .join("");
}

/**
 * A value as JSON on one line. Invisible characters become \uXXXX, which JSON
 * parsers read back.
 */
export function json(value: unknown): string {
  return Array.from(JSON.stringify(value))
    .map((c) =>
      visible(c)
        ? c
        : Array.from({ length: c.length }, (_, i) => i)
            .map((i) => `\\u${hex(c.charCodeAt(i), 4)}`)
            .join(""),
    )
    .join("");
}

function escape(s: string, all: boolean): string {
  const characters = Array.from(s);
  let out = "";
  let markCount = maxMarks;
  characters.forEach((c, i) => {
    const [before, next] = [characters[i - 1], characters[i + 1]];
    if (/[\p{Mn}\p{Me}]/u.test(c)) markCount += 1;
    else markCount = /[\p{L}\p{N}\p{Mc}]/u.test(c) ? 0 : maxMarks;
    if (c === "\\" && all) out += "\\\\";
    else if (
      (all && (c === "`" || c === "<" || (c === " " && before === " "))) ||
      (c === "(" && (before === "]" || before === "$")) ||
      (c === "/" && before === ":" && next === "/") ||
      (c === "&" && /^[#0-9a-zA-Z]+;/.test(characters.slice(i + 1, i + 40).join(""))) ||
      markCount > maxMarks ||
      !visible(c)
    ) {
      out += code(c.codePointAt(0) ?? 0);
    } else out += c;
  });
  return out;
}

function visible(c: string): boolean {
  return (
    /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(c) &&
    !/^[\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800\u{1d159}\ufffc]$/u.test(c)
  );
}

function code(point: number): string {
  if (point === 10) return "\\n";
  if (point === 13) return "\\r";
  if (point === 9) return "\\t";
  if (point < 0x80) return `\\x${hex(point, 2)}`;
  return point < 0x10000 ? `\\u${hex(point, 4)}` : `\\U${hex(point, 8)}`;
}

function hex(point: number, digits: number): string {
  return point.toString(16).padStart(digits, "0");
}

/**
 * Cuts out the middle, but never through an escape, nor between a letter and
 * its marks.
 */
function shorten(s: string, limit: number): string {
  if (Array.from(s).length <= limit) return s;
  const parts = (s.match(/\\x[^]{0,2}|\\u[^]{0,4}|\\U[^]{0,8}|\\[^]|[^][\p{Mn}\p{Me}]*/gu) ?? []).map(
    (part) => [part, Array.from(part).length] as const,
  );
  let [head, tail, headLength, tailLength] = ["", "", 0, 0];
  for (let [first, last] = [0, parts.length - 1]; first <= last;) {
    const [part, length] = parts[headLength <= tailLength ? first : last] ?? ["", 0];
    if (headLength + tailLength + 1 + length > limit) break;
    if (headLength <= tailLength) {
      head += part;
      headLength += length;
      first += 1;
    } else {
      tail = part + tail;
      tailLength += length;
      last -= 1;
    }
  }
  return `${head}…${tail}`;
}
