import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import * as path from "node:path";

/** Keys of "terminal.sandbox" in a settings file. */
export type SandboxSettings = Record<string, unknown>;

/** A test's directories: a home, projects, and VS Code's data. */
export class World {
  /**
   * Not below a temporary directory: sessions may write those, and they must
   * not reach the home.
   */
  readonly root = mkdtempSync(path.join(process.getuid?.() === 0 ? "/var/lib" : homedir(), "sidecar-vscode."));
  readonly home = this.directory("home");
  readonly project = this.directory("home/project");
  readonly other = this.directory("home/other");
  /** A file that the default settings do not grant. */
  readonly secret = path.join(this.home, ".ssh", "id_test");
  /** Its content. */
  readonly secretText = "a-private-key-of-the-tests";

  constructor() {
    this.write(this.secret, `${this.secretText}\n`);
    this.write(path.join(this.home, ".bashrc"), "PS1='ready$ '\n");
    this.settings({ enabled: true });
  }

  directory(name: string): string {
    const dir = path.join(this.root, name);
    mkdirSync(dir, { recursive: true });
    return dir;
  }

  write(file: string, text: string): void {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** The user's settings file. */
  get settingsFile(): string {
    return path.join(this.home, ".config", "sandbox-sidecar", "settings.json");
  }

  /**
   * Writes the user's settings. They grant VS Code's scripts, which shells run.
   */
  settings(sandbox: SandboxSettings): void {
    const block = { additional_read_only_paths: [scripts], ...sandbox };
    this.write(this.settingsFile, `${JSON.stringify({ terminal: { sandbox: block } }, undefined, 2)}\n`);
  }

  /** Writes the extension's settings, which have the scope "machine". */
  machineSettings(settings: Record<string, unknown>): void {
    this.write(path.join(this.root, "data", "Machine", "settings.json"), JSON.stringify(settings));
  }

  dispose(): void {
    rmSync(this.root, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
  }
}

/** Returns a variable that the test script sets. */
export function requireEnv(name: string): string {
  const value = process.env[name];
  if (value === undefined || value === "")
    throw new Error(`${name} is not set: run the tests by clients/vscode/tests/run`);
  return value;
}

const scripts = path.join(
  requireEnv("VSCODE_DIR"),
  "server/node_modules/code-server/lib/vscode/out/vs/workbench/contrib/terminal/common/scripts",
);
