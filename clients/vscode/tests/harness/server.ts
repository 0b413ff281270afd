import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { createWriteStream } from "node:fs";
import { get } from "node:http";
import * as path from "node:path";

import { below, alive } from "./processes";
import { until } from "./until";
import { requireEnv, type World } from "./world";

/** VS Code's settings: no questions, and no use of the network. */
const baseSettings = {
  "terminal.integrated.gpuAcceleration": "off",
  "terminal.integrated.enablePersistentSessions": false,
  "terminal.integrated.showLinkHover": false,
  "terminal.integrated.fontSize": 14,
  "terminal.integrated.initialHint": false,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.enableExperiments": false,
  // What moves without end is drawn all the time, by the processor.
  "workbench.reduceMotion": "on",
  "editor.cursorBlinking": "solid",
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "update.showReleaseNotes": false,
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": "off",
  "extensions.ignoreRecommendations": true,
  "chat.disableAIFeatures": true,
  "git.enabled": false,
  "editor.accessibilitySupport": "off",
  "files.autoSave": "off",
  "window.restoreWindows": "none",
};

/** How to start a server. */
export interface ServerOptions {
  /**
   * For tests within the extension host. Notifications and dialogs are not
   * shown then.
   */
  driver?: boolean;
  /** A package to install as users do. */
  vsix?: string;
  /** Additional settings of VS Code. */
  settings?: Record<string, unknown>;
  /** The extension's settings. */
  machine?: Record<string, unknown>;
  env?: Record<string, string>;
}

/** VS Code's server, with the real workbench and a real extension host. */
export class Server {
  private constructor(
    private readonly child: ChildProcess,
    readonly port: number,
  ) {}

  static async start(world: World, options: ServerOptions = {}): Promise<Server> {
    const vscode = requireEnv("VSCODE_DIR");
    const bin = path.join(vscode, "bin");
    const data = world.directory("data");
    const settings = { ...baseSettings, "security.workspace.trust.enabled": false, ...options.settings };
    world.write(path.join(data, "User", "settings.json"), JSON.stringify(settings));
    world.machineSettings(options.machine ?? {});
    const env = {
      PATH: `${bin}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin`,
      HOME: world.home,
      SHELL: "/bin/bash",
      LANG: "C.UTF-8",
      TMPDIR: world.directory("tmp"),
      EXTENSIONS_GALLERY: '{"serviceUrl":""}',
      ...options.env,
    };
    const common = [
      path.join(vscode, "server/node_modules/code-server/out/node/entry.js"),
      ...[
        "--config",
        path.join(world.root, "server.yaml"),
        "--user-data-dir",
        data,
        "--extensions-dir",
        world.directory("extensions"),
      ],
    ];
    const node = path.join(bin, "node");
    if (options.vsix !== undefined)
      execFileSync(node, [...common, "--install-extension", options.vsix, "--force"], { env, stdio: "pipe" });
    const args = [
      ...common,
      ...["--auth", "none", "--bind-addr", "127.0.0.1:0", "--reconnection-grace-time", "3"],
      ...["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"],
      ...(options.driver === true ? ["--vscode-option", "enable-smoke-test-driver"] : []),
    ];
    for (let attempt = 1; ; attempt++) {
      try {
        return await Server.launch(node, args, env, world);
      } catch (error) {
        // It allows its own process ten seconds to start, which is too short on
        // a busy machine.
        if (attempt === 5 || !String(error).includes("error timed out")) throw error;
      }
    }
  }

  private static async launch(
    node: string,
    args: string[],
    env: Record<string, string>,
    world: World,
  ): Promise<Server> {
    const child = spawn(node, args, { env, cwd: world.root, stdio: ["ignore", "pipe", "pipe"] });
    const log = createWriteStream(path.join(world.root, "server.log"), { flags: "a" });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => {
        output += chunk.toString("utf8");
        log.write(chunk);
      });
    }
    try {
      const listening = () => /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(output)?.[1];
      await until("the server listens", () => child.exitCode !== null || listening() !== undefined);
      const port = listening();
      if (port === undefined) throw new Error(`the server has ended: ${output}`);
      const server = new Server(child, Number(port));
      await until("the server answers", () => server.healthy());
      return server;
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  }

  private healthy(): Promise<boolean> {
    return new Promise((resolve) => {
      get(`http://127.0.0.1:${this.port}/healthz`, (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      }).on("error", () => resolve(false));
    });
  }

  /**
   * The process id of a window's extension host; undefined if there is none.
   */
  extensionHost(): number | undefined {
    const hosts = below(this.child.pid ?? 0).filter(({ command }) => command.includes("--type=extensionHost"));
    return hosts.at(-1)?.pid;
  }

  /** Ends the server and its descendants. */
  async stop(): Promise<void> {
    const descendants = below(this.child.pid ?? 0);
    const all = descendants.map(({ pid }) => pid);
    const sidecars = descendants.filter(({ command }) => /sandbox-sidecar (serve|watchdog) /.test(command));
    this.child.kill("SIGTERM");
    await until("the server has ended", () => this.child.exitCode !== null || this.child.signalCode !== null, 20).catch(
      () => this.child.kill("SIGKILL"),
    );
    // Killed with its watchdog, a sidecar would leave its temporary files.
    const left = await until("the sidecars have ended", () => sidecars.every(({ pid }) => !alive(pid)), 20).then(
      () => undefined,
      (error: unknown) => new Error(String(error)),
    );
    for (const pid of all) {
      try {
        if (alive(pid)) process.kill(pid, "SIGKILL"); // file watchers end late
      } catch {
        // it has ended meanwhile
      }
    }
    if (left !== undefined) throw left;
  }
}
