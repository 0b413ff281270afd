import * as assert from "node:assert/strict";

import { type Page } from "../../src/page";
import { policyPage } from "../../src/policyText";
import { type Policy, type PolicyRule, scalarKeys } from "../../src/protocol.gen";

const settings = "/home/ada-of-the-analytical-engines/.config/sandbox-sidecar/settings.json";

function page(rules: Partial<PolicyRule>[], more: Partial<Policy> = {}): Page {
  const defaults = {
    path: "/usr/lib",
    access: ["read", "execute"],
    setting: "system_paths.executable",
    file: "built-in defaults",
  };
  const policy: Policy = {
    restricted: true,
    project: "/home/ada/project",
    rules: rules.map((rule) => ({ ...defaults, ...rule })),
    privateRuntimeDir: false,
    privateTerminals: false,
    temporaryDirs: [],
    hiddenPaths: [],
    privateCaches: [],
    allowNetwork: true,
    allowedHosts: [],
    deniedHosts: [],
    unixSockets: [],
    signingKeys: [],
    allowedEnvVars: [],
    protectedPaths: [],
    requireProtected: false,
    onUnavailable: "warn",
    onDenied: "report",
    diagnostics: [],
    origins: [],
    ...more,
  };
  return policyPage("terminal", "p1", policy);
}

/** Returns the lines below a heading. */
function below(heading: string, { text }: Page): string[] {
  const lines = text.split("\n");
  const from = lines.indexOf(heading) + 1;
  assert.ok(from > 0, text);
  return lines.slice(from, lines.indexOf("", from));
}

describe("the text of a policy", () => {
  it("has each rule below the setting that it comes from", () => {
    const lines = below("FILES", page([{ path: "/usr/bin" }, { path: "/usr/lib" }, { path: "/proc", access: ["read"], setting: "system_paths.read_only" }]));
    assert.deepEqual(lines, [
      "  system_paths.executable  built-in defaults",
      "    read, execute         /usr/bin",
      "    read, execute         /usr/lib",
      "  system_paths.read_only  built-in defaults",
      "    read                  /proc",
    ]);
  });

  it("leads to the lines of the settings, and nowhere else", () => {
    const shown = page([
      { path: "/x/etc/passwd:1" },
      { path: "/home/ada/.cache/go-build", setting: "toolchains", entry: "go", file: settings, line: 3 },
    ]);
    assert.deepEqual(
      shown.links.map(({ file, line, start, end }) => [file, line, shown.text.slice(start, end)]),
      [[settings, 3, `${settings}:3`]],
    );
    assert.deepEqual(below("FILES", shown).slice(2), [
      `  toolchains: go  ${settings}:3`,
      "    read, execute         /home/ada/.cache/go-build",
    ]);
  });

  it("has one line for each rule, whatever its path", () => {
    const lines = page([{ path: "/a\nSWITCHES\u202e\u001b[31m" }], { project: "/p\nFILES" }).text.split("\n");
    assert.equal(lines[0], "A terminal in /p\\nFILES");
    assert.ok(lines.some((line) => line.endsWith("/a\\nSWITCHES\\u202e\\x1b[31m")), lines.join("\n"));
    assert.equal(lines.filter((line) => line.startsWith("SWITCHES")).length, 1);
  });

  it("has what people look for first: mistakes, then files, then switches", () => {
    const diagnostics = [{ file: settings, line: 12, column: 1, severity: "warning" as const, message: "m" }];
    const lines = page([{}], { diagnostics }).text.split("\n");
    const order = ["PROBLEMS IN THE SETTINGS", "FILES", "SWITCHES"].map((heading) => lines.indexOf(heading));
    assert.ok(order.every((at, i) => at > (order[i - 1] ?? 1)), order.join());
  });

  it("leaves it to the editor to wrap diagnostics", () => {
    const message = Array.from({ length: 60 }, (_, i) => `word${i}`).join(" ");
    const diagnostics = [{ file: settings, line: 12, column: 1, severity: "warning" as const, message }];
    const shown = page([], { diagnostics });
    assert.equal(shown.links[0]?.line, 12);
    assert.ok(shown.text.split("\n").includes(`    ${message}`), shown.text);
  });

  it("has every key of a single value, and a blank behind it", () => {
    const origins = scalarKeys.map((key) => ({ key, value: "256", file: "built-in defaults" }));
    const shown = below("SWITCHES", page([], { origins }));
    assert.deepEqual(
      shown.map((line) => line.trim().split(/\s+/).slice(0, 2)),
      scalarKeys.map((key) => [key, "256"]),
    );
    assert.ok(scalarKeys.includes("limits.connections"));
  });

  it("says so if nothing is sandboxed", () => {
    assert.match(page([], { restricted: false }).text, /^is NOT sandboxed\./m);
    assert.match(page([]).text, /^is sandboxed\.$/m);
  });
});
