import type { DeniedParams, Suggestion } from "./protocol.gen";

/** How many denials the list keeps. */
const maxListed = 200;

/** A denial, with how often it happened. */
export interface Refusal {
  key: string;
  denial: DeniedParams;
  total: number;
}

/** Denials that one setting would allow, or none for one reason. */
export interface Group {
  key: string;
  suggestion: Suggestion | undefined;
  /** What to be careful about, or why there is no setting. */
  hint: string | undefined;
  refusals: Refusal[];
}

/** The window's denials, the newest of each kind. */
export class Refusals {
  private readonly all = new Map<string, Refusal>();

  /** Records a denial. Returns the one that it repeats; undefined if it is new. */
  add(denial: DeniedParams): Refusal | undefined {
    const key = keyOf(denial);
    const before = this.all.get(key);
    this.all.delete(key);
    this.all.set(key, { key, denial, total: (before?.total ?? 0) + denial.count });
    const oldest = this.all.keys().next();
    if (this.all.size > maxListed && oldest.done !== true) this.all.delete(oldest.value);
    return before;
  }

  clear(): void {
    this.all.clear();
  }

  get size(): number {
    return this.all.size;
  }

  /** Returns the denials by what would allow them, the newest first. */
  groups(): Group[] {
    const groups = new Map<string, Group>();
    for (const refusal of [...this.all.values()].reverse()) {
      const { suggestion, hint } = refusal.denial;
      const key = groupKey(suggestion) ?? `no setting ${hint ?? ""}`;
      const group = groups.get(key) ?? { key, suggestion, hint, refusals: [] };
      group.refusals.push(refusal);
      groups.set(key, group);
    }
    return [...groups.values()];
  }
}

/** Returns the same for suggestions of the same line; undefined without one. */
export function groupKey(suggestion: Suggestion | undefined): string | undefined {
  return suggestion === undefined ? undefined : `${suggestion.setting} ${JSON.stringify(suggestion.value)}`;
}

/** Returns the same for denials that are the same for the user. */
export function keyOf({ access, target, detail }: DeniedParams): string {
  return `${access} ${target} ${detail ?? ""}`;
}
