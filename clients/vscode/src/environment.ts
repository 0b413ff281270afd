/**
 * Returns the sidecar's environment: the editor's, without the variables that
 * the editor sets for its own processes. Sandboxed sessions get fewer variables
 * anyway. Unsandboxed ones would otherwise run every Electron program as Node.
 */
export function sidecarEnvironment(own: NodeJS.ProcessEnv): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && !/^(VSCODE_|ELECTRON_|CODE_SERVER_|CHROME_DESKTOP$)/.test(name)) result[name] = value;
  }
  return result;
}
