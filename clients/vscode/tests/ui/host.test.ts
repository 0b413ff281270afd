import * as assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import * as path from "node:path";

import { Browser } from "../harness/browser";
import { addDebugger } from "../harness/debugger";
import { Server } from "../harness/server";
import { requireEnv, World } from "../harness/world";

/** HOST_ONLY=PATTERN selects tests during development. */
const only: Record<string, string> =
  process.env["HOST_ONLY"] === undefined ? {} : { HOST_ONLY: process.env["HOST_ONLY"] };

interface Report {
  tests: { fullTitle: string; duration?: number; err: { message?: string; stack?: string } }[];
}

/**
 * Runs the tests of tests/host in an extension host, and reports each of them.
 */
describe("in the extension host", function () {
  this.timeout(1_600_000);
  let report: Report;

  before(async () => {
    const world = new World();
    addDebugger(world);
    const file = path.join(world.root, "report.json");
    const folders = [world.project, world.other].map((folder) => ({ path: folder }));
    const workspace = path.join(world.root, "both.code-workspace");
    world.write(workspace, JSON.stringify({ folders }));
    const said: string[] = [];
    const partial: { server?: Server; browser?: Browser } = {};
    try {
      const options = {
        driver: true,
        machine: { "sandboxSidecar.path": requireEnv("SIDECAR_BINARY") },
        env: { HOST_REPORT: file, ...only },
      };
      const server = (partial.server = await Server.start(world, options));
      const browser = (partial.browser = await Browser.open(world));
      const ended = new Promise<number>((resolve) => void browser.page.exposeFunction("codeAutomationExit", resolve));
      await browser.page.exposeFunction(
        "codeAutomationLog",
        (_: string, args: unknown[]) => void said.push(args.map(String).join(" ")),
      );
      const remote = (name: string) => `vscode-remote://127.0.0.1:${server.port}${name}`;
      const extension = requireEnv("EXTENSION_DIR");
      const payload = [
        ["extensionDevelopmentPath", remote(extension)],
        ["extensionTestsPath", remote(path.join(extension, "dist-test", "host", "index"))],
        ["skipWelcome", "true"],
      ];
      const query = `workspace=${workspace}&payload=${encodeURIComponent(JSON.stringify(payload))}`;
      await browser.page.goto(`http://127.0.0.1:${server.port}/?${query}`);
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new Error(`the extension host's tests do not end:\n${said.slice(-40).join("\n")}`)),
          1_500_000,
        );
      });
      await Promise.race([ended, late]);
      clearTimeout(timer);
      if (process.env["SHOTS"] !== undefined)
        await browser.page.screenshot({ path: path.join(process.env["SHOTS"], "host.png") });
      assert.ok(existsSync(file), `the extension host's tests did not run:\n${said.slice(-40).join("\n")}`);
      report = JSON.parse(readFileSync(file, "utf8")) as Report;
    } finally {
      await partial.browser?.close();
      await partial.server?.stop();
      world.dispose();
    }
  });

  it("runs tests", () => assert.ok(report.tests.length > 15 || "HOST_ONLY" in only, `only ${report.tests.length}`));

  it("passes them", () => {
    const failed = report.tests.filter(({ err }) => err.message !== undefined);
    const passed = report.tests.filter(({ err }) => err.message === undefined);
    process.stdout.write(
      passed.map(({ fullTitle, duration }) => `      ✔ ${fullTitle} (${duration ?? 0} ms)\n`).join(""),
    );
    assert.deepEqual(
      failed.map(({ fullTitle, err }) => `${fullTitle}: ${err.stack ?? err.message ?? ""}`),
      [],
    );
  });
});
