import * as vscode from "vscode";

/** The extension's own settings. All are machine-scoped: a repository sets none of them. */
export interface Configuration {
  path: string;
  settingsPath: string;
  shell: string[];
  env: Record<string, string>;
  shellIntegration: boolean;
  clipboard: boolean;
  denials: "notify" | "log";
  toolMaxOutput: number;
  logLevel: "debug" | "info" | "warn" | "error";
}

/** The section that the settings are below. */
export const section = "sandboxSidecar";

/** Answers the settings as they are now. */
export function configuration(): Configuration {
  const c = vscode.workspace.getConfiguration(section);
  return {
    path: c.get("path", ""),
    settingsPath: c.get("settingsPath", ""),
    shell: c.get("shell", []),
    env: c.get("env", {}),
    shellIntegration: c.get("shellIntegration", true),
    clipboard: c.get("clipboard", false),
    denials: c.get("denials", "notify"),
    toolMaxOutput: c.get("tool.maxOutput", 32768),
    logLevel: c.get("logLevel", "info"),
  };
}
