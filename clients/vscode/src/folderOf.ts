import * as path from "node:path";

import type { Access, PolicyExplainResult, Suggestion } from "./protocol.gen";

/** What to ask the sidecar about the folder of what was refused. */
export interface FolderQuestion {
  /** The folder, absolute. */
  target: string;
  access: Access;
}

/** The lists whose entries may be folders, and what they give. */
const lists: Record<string, Access> = {
  additional_read_only_paths: "read",
  additional_read_write_paths: "write",
};

/**
 * Returns the question about the folder of a suggested file; undefined if that
 * has none to offer: the home directory, what contains it, and the directories
 * at the root are too much for one click.
 */
export function folderQuestion({ setting, value }: Suggestion, home: string): FolderQuestion | undefined {
  const access = lists[setting.replace(/^(terminal|tool)\./, "")];
  if (access === undefined || typeof value !== "string" || /[*?[\]]/.test(value)) return undefined;
  const file = absolute(value, home);
  if (file === undefined) return undefined;
  const target = path.dirname(file);
  const isAbove = target === home || home.startsWith(target.endsWith("/") ? target : `${target}/`);
  return isAbove || path.dirname(target) === "/" ? undefined : { target, access };
}

/**
 * Returns the suggestion for a folder; undefined if the sidecar's judge would
 * not make it, warns of it, or means something else.
 */
export function folderSuggestion(
  suggestion: Suggestion,
  { target }: FolderQuestion,
  answer: Pick<PolicyExplainResult, "allowed" | "setting" | "value" | "hint" | "careful">,
  home: string,
): Suggestion | undefined {
  const { allowed, setting, value, hint, careful } = answer;
  if (allowed || careful === true || hint !== undefined || value === undefined) return undefined;
  const bare = (key: string | undefined) => key?.replace(/^(terminal|tool)\./, "");
  if (bare(setting) !== bare(suggestion.setting) || absolute(value, home) !== target) return undefined;
  return { ...suggestion, value };
}

function absolute(entry: string, home: string): string | undefined {
  const whole = entry.startsWith("~/") ? path.join(home, entry.slice(2)) : entry;
  return path.isAbsolute(whole) ? path.normalize(whole).replace(/(.)\/$/, "$1") : undefined;
}
