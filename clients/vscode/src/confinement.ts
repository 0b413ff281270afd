/**
 * The settings by which VS Code starts confined shells, and the way back. It
 * knows nothing of the editor, so that it can be tested alone.
 */

/** The settings of the user, or those of the workspace. */
export interface Target {
  /** Reports whether this version of the editor has a setting. */
  has(key: string): boolean;
  /** Returns the value that this target gives a setting; undefined if none. */
  get(key: string): unknown;
  /** Gives a setting a value; undefined takes the value away. */
  set(key: string, value: unknown): Promise<void>;
}

/** A setting with its value before and after. */
export interface Change {
  key: string;
  /** Missing if the target gave the setting no value. */
  before?: unknown;
  after: unknown;
}

/** The shell of the terminals. */
export interface Shell {
  /** The name of its profile. */
  name: string;
  path: string;
  args: string[];
}

/** How VS Code calls a system in the names of settings. */
export function systemName(platform: NodeJS.Platform): "linux" | "osx" {
  return platform === "darwin" ? "osx" : "linux";
}

/**
 * Returns the values that confine everything, and for each key whether it holds
 * a list of profiles.
 */
function wanted(system: "linux" | "osx", shell: Shell): [key: string, value: unknown][] {
  const plain = { path: shell.path };
  const profile = { ...plain, ...(shell.args.length > 0 ? { args: shell.args } : {}), icon: "shield" };
  return [
    [`${profiles}.${system}`, { [shell.name]: profile }],
    [`terminal.integrated.defaultProfile.${system}`, shell.name],
    [`terminal.integrated.automationProfile.${system}`, plain],
    [`terminal.integrated.agentHostProfile.${system}`, plain],
    [`chat.tools.terminal.terminalProfile.${system}`, plain],
  ];
}

const profiles = "terminal.integrated.profiles";

/** The setting that names what Settings Sync leaves out. */
export const ignored = "settingsSync.ignoredSettings";

/**
 * Returns the change that keeps settings on this machine: they name a path that
 * another machine may not have, and there VS Code starts a plain shell. known is
 * that of an earlier time. Returns undefined if the editor has no such setting.
 */
export function keptHere(target: Target, keys: readonly string[], known?: Change): Change | undefined {
  if (!target.has(ignored)) return undefined;
  const now = target.get(ignored);
  const before = known !== undefined && equal(now, known.after) ? known.before : now;
  const list = strings(before);
  const after = [...list, ...keys.filter((key) => !list.includes(key))];
  return before === undefined ? { key: ignored, after } : { key: ignored, before, after };
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : [];
}

/** Returns what to write, as the user is shown it: without other profiles. */
export function shown(target: Target, system: "linux" | "osx", shell: Shell): [key: string, value: unknown][] {
  return wanted(system, shell).filter(([key]) => target.has(key));
}

/**
 * Returns the changes that confine everything. known are those of an earlier
 * time: what they wrote is not taken for the user's.
 */
export function plan(target: Target, system: "linux" | "osx", shell: Shell, known: readonly Change[]): Change[] {
  return shown(target, system, shell).map(([key, value]) => {
    const earlier = known.find((change) => change.key === key);
    const now = target.get(key);
    const before = earlier !== undefined && equal(now, earlier.after) ? earlier.before : now;
    const after = key.startsWith(profiles) ? { ...object(before), ...object(value) } : value;
    return before === undefined ? { key, after } : { key, before, after };
  });
}

/** A setting that could not be changed, for example because a policy sets it. */
export interface Failure {
  key: string;
  error: unknown;
}

/** Writes changes. One that fails does not keep the others back. */
export async function write(
  target: Target,
  changes: readonly Change[],
): Promise<{ written: Change[]; failed: Failure[] }> {
  const written: Change[] = [];
  const failed: Failure[] = [];
  for (const change of changes) {
    try {
      await target.set(change.key, change.after);
      written.push(change);
    } catch (error) {
      failed.push({ key: change.key, error });
    }
  }
  return { written, failed };
}

/**
 * Takes changes back. What the user has changed since stays, and so does what
 * cannot be written; that is tried again the next time. others are settings that
 * another command has written, and that stay on this machine.
 */
export async function undo(
  target: Target,
  changes: readonly Change[],
  others: readonly string[] = [],
): Promise<{ restored: string[]; changed: string[]; failed: Failure[] }> {
  const result = { restored: [] as string[], changed: [] as string[], failed: [] as Failure[] };
  for (const { key, before, after } of changes) {
    const now = target.get(key);
    if (equal(now, before)) continue;
    let value: unknown;
    if (key === ignored) {
      // The user or another command has added some since, which stay.
      const own = new Set(strings(after).filter((entry) => !strings(before).includes(entry) && !others.includes(entry)));
      const rest = strings(now).filter((entry) => !own.has(entry));
      value = before === undefined && rest.length === 0 ? undefined : rest;
      if (equal(now, value)) continue;
    } else if (equal(now, after)) {
      value = before;
    } else if (key.startsWith(profiles)) {
      const rest = withoutOurs(object(now), object(before), object(after));
      if (rest === undefined) {
        result.changed.push(key);
        continue;
      }
      value = before === undefined && Object.keys(rest).length === 0 ? undefined : rest;
    } else {
      result.changed.push(key);
      continue;
    }
    try {
      await target.set(key, value);
      result.restored.push(key);
    } catch (error) {
      result.failed.push({ key, error });
    }
  }
  return result;
}

type Profiles = Record<string, unknown>;

/**
 * Returns profiles without the one that was added; undefined if the user has
 * changed that one, or removed it.
 */
function withoutOurs(now: Profiles, before: Profiles, after: Profiles): Profiles | undefined {
  const result = { ...now };
  for (const [name, profile] of Object.entries(after)) {
    if (equal(profile, before[name])) continue;
    if (!equal(now[name], profile)) return undefined;
    if (name in before) result[name] = before[name];
    else Reflect.deleteProperty(result, name);
  }
  return result;
}

function object(value: unknown): Profiles {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

/** Compares values as settings files hold them: the order of keys is no matter. */
export function equal(a: unknown, b: unknown): boolean {
  return ordered(a) === ordered(b);
}

function ordered(value: unknown): string | undefined {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
