import { applyEdits, findNodeAtLocation, modify, parseTree, type Node, type ParseError } from "jsonc-parser";

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

type Platform = "linux" | "macos";

/**
 * Returns the text of a settings file with a key of "terminal.sandbox" set.
 * Everything else stays as it was, comments included. A platform's own block
 * overrides the rest, so the key is set there if it is there already. Throws if
 * the text is not valid.
 */
export function withSetting(text: string, platform: Platform, key: string, value: unknown): string {
  const source = text.trim() === "" ? "{}\n" : text;
  const tree = parsed(source);
  const [block, own] = places(platform, key);
  return edited(source, findNodeAtLocation(tree, own) === undefined ? block : own, value);
}

/** Returns the text without a key, for this platform. Else as withSetting. */
export function withoutSetting(text: string, platform: Platform, key: string): string {
  if (text.trim() === "") return text;
  return places(platform, key).reduce(
    (rest, path) => (findNodeAtLocation(parsed(rest), path) === undefined ? rest : edited(rest, path, undefined)),
    text,
  );
}

/** Where a key may stand: for all platforms, and for this one. */
function places(platform: Platform, key: string): [block: string[], own: string[]] {
  const block = ["terminal", "sandbox", ...key.split(".")];
  return [block, [platform, ...block]];
}

function parsed(source: string): Node {
  const errors: ParseError[] = [];
  const tree = parseTree(source, errors, { allowTrailingComma: true });
  if (tree === undefined || errors.length > 0 || tree.type !== "object")
    throw new Error("Nothing was written: the settings file is not valid JSON. Fix it first.");
  return tree;
}

function edited(source: string, path: string[], value: unknown): string {
  return applyEdits(source, modify(source, path, value, { formattingOptions: { insertSpaces: true, tabSize: 2 } }));
}
