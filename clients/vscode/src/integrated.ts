import * as path from "node:path";

/**
 * VS Code's own settings of terminals, for those that the extension draws: VS
 * Code applies them only to terminals whose process it starts itself.
 */

/** What the variables in these settings stand for. */
export interface Variables {
  workspaceFolder: string;
  userHome: string;
  /** The editor's environment; undefined if the settings may not name it. */
  env: NodeJS.ProcessEnv | undefined;
}

/** Replaces variables such as ${workspaceFolder}; undefined if one is not known. */
export function resolveVariables(value: string, { workspaceFolder, userHome, env }: Variables): string | undefined {
  const unknown: string[] = [];
  const resolved = value.replace(/\$\{([^}]*)\}/g, (_, name: string) => {
    if (name === "workspaceFolder") return workspaceFolder;
    if (name === "userHome") return userHome;
    if (name === "pathSeparator" || name === "/") return path.sep;
    if (name.startsWith("env:") && env !== undefined) return env[name.slice(4)] ?? "";
    unknown.push(name);
    return "";
  });
  return unknown.length === 0 ? resolved : undefined;
}

/** Returns the directory of terminal.integrated.cwd; undefined if it names none. */
export function startDirectory(cwd: unknown, variables: Variables): string | undefined {
  if (typeof cwd !== "string" || cwd === "") return undefined;
  const resolved = resolveVariables(cwd, variables);
  if (resolved === undefined || resolved === "") return undefined;
  const whole = resolved.replace(/^~(?=\/|$)/, () => variables.userHome);
  return path.resolve(variables.workspaceFolder, whole);
}

/**
 * Returns an environment with the values of terminal.integrated.env, from the
 * settings that count least to those that count most. A null takes a variable
 * away. What cannot be resolved is left out.
 */
export function withEnvironment(
  before: Readonly<Record<string, string>>,
  ...layers: readonly (readonly [setting: unknown, variables: Variables])[]
): Record<string, string> {
  const result: Record<string, string> = { ...before };
  for (const [setting, variables] of layers) {
    if (typeof setting !== "object" || setting === null) continue;
    for (const [name, value] of Object.entries(setting)) {
      if (value === null) Reflect.deleteProperty(result, name);
      const resolved = typeof value === "string" ? resolveVariables(value, variables) : undefined;
      if (resolved !== undefined) result[name] = resolved;
    }
  }
  return result;
}

/**
 * Returns the name of the program that a command line runs, for a terminal's
 * title; undefined if it has none that is plain. A program may not choose a
 * title that says something else.
 */
export function programOf(commandLine: string): string | undefined {
  const words = commandLine.trim().split(/\s+/);
  const first = words.find((word) => !/^\w+=/.test(word)) ?? "";
  const name = path.basename(first);
  return /^[\w.+-]{1,30}$/.test(name) ? name : undefined;
}
