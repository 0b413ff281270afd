/**
 * The environment that the sidecar is started with: the editor's without what
 * the editor has put there for its own processes. Sessions that are sandboxed
 * get less anyway; those that are not would otherwise run every Electron
 * program as Node.
 */
export function sidecarEnvironment(own: NodeJS.ProcessEnv): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && !/^(VSCODE_|ELECTRON_|CODE_SERVER_|CHROME_DESKTOP$)/.test(name)) result[name] = value;
  }
  return result;
}
