import * as assert from "node:assert/strict";

import { writable } from "../../src/writable";

const rule = (path: string, setting = "project", access = ["read", "write"]) => ({ path, access, setting, file: "f" });
const project = "/home/ada/p";

describe("what a command may write", () => {
  it("is the project, and what the settings add", () => {
    const rules = [rule(project), rule(`${project}/out`), rule("/srv/a", "additional_read_write_paths")];
    assert.deepEqual(writable({ rules, project, privateCaches: [] }), { project: true, others: ["/srv/a"] });
    assert.deepEqual(writable({ rules: [rule("/home/ada/x")], project, privateCaches: [] }).project, false);
  });

  it("is not a private cache, nor what every session has", () => {
    const rules = [
      rule(project),
      rule("/home/ada/.cache/go-build", "toolchains"),
      rule("/home/ada/go/pkg", "toolchains"),
      rule("/tmp", "system_paths.read_write"),
      rule("/dev/null", "x", ["write", "device"]),
      rule("/usr", "x", ["read"]),
    ];
    const caches = ["/home/ada/.cache/go-build", "/home/ada/go"];
    assert.deepEqual(writable({ rules, project, privateCaches: caches }), { project: true, others: [] });
    assert.equal(writable({ rules, project, privateCaches: [] }).others.length, 2);
    // A project in one is written itself.
    assert.equal(writable({ rules, project, privateCaches: ["/home/ada"] }).project, true);
  });
});
