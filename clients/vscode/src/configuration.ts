import * as vscode from "vscode";

/**
 * The extension's own settings. All have the scope "machine", so no repository
 * can set them.
 */
export interface Configuration {
  path: string;
  settingsPath: string;
  shell: string[];
  env: Record<string, string>;
  shellIntegration: boolean;
  clipboard: boolean;
  denials: "notify" | "log";
  toolMaxOutput: number;
  toolAutoApprove: boolean;
  logLevel: "debug" | "info" | "warn" | "error";
}

/** The prefix of the settings' keys. */
export const section = "sandboxSidecar";

/** Returns the current settings. */
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
    toolAutoApprove: c.get("tool.autoApprove", false),
    logLevel: c.get("logLevel", "info"),
  };
}
