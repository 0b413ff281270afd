import { applyEdits, findNodeAtLocation, modify, parseTree, type ParseError } from "jsonc-parser";

/**
 * Returns the value of a setting after a suggestion: an entry is added to a
 * list, any other value replaces the old one.
 */
export function withSuggestion(current: unknown, value: unknown): unknown {
  if (!Array.isArray(current) || Array.isArray(value)) return value;
  const list = current as unknown[];
  return list.includes(value) ? list : [...list, value];
}

/** Returns the value of a setting such as "toolchains" or "tool.toolchains". */
export function settingOf(settings: unknown, key: string): unknown {
  return key.split(".").reduce<unknown>((block, name) => (block as Record<string, unknown> | undefined)?.[name], settings);
}

/**
 * Returns the text of a settings file with a key of "terminal.sandbox" set.
 * Everything else stays as it was, comments included. A platform's own block
 * overrides the rest, so the key is set there if it is there already. Throws if
 * the text is not valid.
 */
export function withSetting(text: string, platform: "linux" | "macos", key: string, value: unknown): string {
  const source = text.trim() === "" ? "{}\n" : text;
  const errors: ParseError[] = [];
  const tree = parseTree(source, errors, { allowTrailingComma: true });
  if (tree === undefined || errors.length > 0 || tree.type !== "object")
    throw new Error("Nothing was written: the settings file is not valid JSON. Fix it first.");
  const block = ["terminal", "sandbox", ...key.split(".")];
  const own = [platform, ...block];
  const path = findNodeAtLocation(tree, own) === undefined ? block : own;
  return applyEdits(source, modify(source, path, value, { formattingOptions: { insertSpaces: true, tabSize: 2 } }));
}
