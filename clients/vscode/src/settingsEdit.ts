import { applyEdits, findNodeAtLocation, modify, parseTree, type ParseError } from "jsonc-parser";

/** What a setting becomes when a suggestion is taken: an entry is added to a list, anything else is the value itself. */
export function withSuggestion(current: unknown, value: unknown): unknown {
  if (!Array.isArray(current) || Array.isArray(value)) return value;
  const list = current as unknown[];
  return list.includes(value) ? list : [...list, value];
}

/**
 * Answers a settings file with a key of "terminal.sandbox" set, and everything
 * else, comments too, as it was. A platform's own block counts more than the
 * rest of the file, so where the key stands there, it is set there. Raises an
 * error where the file cannot be understood.
 */
export function withSetting(text: string, platform: "linux" | "macos", key: string, value: unknown): string {
  const source = text.trim() === "" ? "{}\n" : text;
  const errors: ParseError[] = [];
  const tree = parseTree(source, errors, { allowTrailingComma: true });
  if (tree === undefined || errors.length > 0 || tree.type !== "object")
    throw new Error("the file has mistakes: mend it first");
  const block = ["terminal", "sandbox", ...key.split(".")];
  const own = [platform, ...block];
  const path = findNodeAtLocation(tree, own) === undefined ? block : own;
  return applyEdits(source, modify(source, path, value, { formattingOptions: { insertSpaces: true, tabSize: 2 } }));
}
