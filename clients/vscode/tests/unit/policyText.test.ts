import * as assert from "node:assert/strict";

import { policyText } from "../../src/policyText";
import type { Policy, PolicyRule } from "../../src/protocol.gen";

const settings = "/home/ada-of-the-analytical-engines/.config/sandbox-sidecar/settings.json";

function text(rules: Partial<PolicyRule>[], more: Partial<Policy> = {}): string[] {
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
  return policyText("terminal", "p1", policy).split("\n");
}

describe("the text of a policy", () => {
  it("has a line for each rule, in columns", () => {
    const lines = text([{ path: "/usr/bin" }, { path: "/proc", access: ["read"], setting: "system_paths.read_only" }]);
    assert.deepEqual(lines.slice(3, 6), [
      "FILES",
      "  read, execute  /usr/bin  system_paths.executable (built-in defaults)",
      "  read           /proc     system_paths.read_only (built-in defaults)",
    ]);
  });

  it("wraps a long row below the path, and keeps the place in the file whole", () => {
    const path = "/home/ada-of-the-analytical-engines/.cache/go-build";
    const lines = text([{}, { path, setting: "toolchains", entry: "go", file: settings, line: 3 }]);
    assert.deepEqual(lines.slice(4, 7), [
      "  read, execute  /usr/lib                              system_paths.executable (built-in defaults)",
      `  read, execute  ${path}`,
      `                 toolchains: go (${settings}:3)`,
    ]);
  });

  it("has one line for each rule, whatever its path", () => {
    const lines = text([{ path: "/a\nSWITCHES\u202e\u001b[31m" }], { project: "/p\nFILES" });
    assert.ok(lines[0]?.startsWith("A terminal in /p\\nFILES, policy"));
    assert.ok(lines[4]?.startsWith("  read, execute  /a\\nSWITCHES\\u202e\\x1b[31m"), lines[4]);
    assert.equal(lines.filter((line) => line.startsWith("SWITCHES")).length, 1);
  });

  it("wraps diagnostics of any length, and loses no word", () => {
    const message = Array.from({ length: 60 }, (_, i) => `word${i}`).join(" ");
    const diagnostics = [{ file: settings, line: 12, column: 1, severity: "warning" as const, message }];
    const lines = text([], { diagnostics });
    assert.deepEqual(
      lines.filter((line) => line.length > 120),
      [],
    );
    assert.ok(lines.some((line) => line.includes(`${settings}:12`)));
    assert.ok(lines.join(" ").replace(/\s+/g, " ").includes(message));
  });
});
