import * as assert from "node:assert/strict";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";

import { leadTo, linkedShells, linkFor, linksDirectory, makeLinks, missingOf } from "../../src/shellLinks";

describe("the links of shells", () => {
  const program = process.env["SIDECAR_BINARY"] ?? "";
  let directory: string;
  beforeEach(() => (directory = mkdtempSync(path.join(realpathSync(tmpdir()), "links-"))));
  afterEach(() => rmSync(directory, { recursive: true }));

  it("lie where the program makes them", () => {
    assert.equal(linksDirectory({ HOME: "/h" }), "/h/.local/share/sandbox-sidecar/shells");
    assert.equal(linksDirectory({ HOME: "/h", XDG_DATA_HOME: "/d" }), "/d/sandbox-sidecar/shells");
    assert.equal(linksDirectory({ HOME: "/h", XDG_DATA_HOME: "relative" }), "/h/.local/share/sandbox-sidecar/shells");
    assert.equal(linksDirectory({}), undefined);
  });

  it("are known in settings, also in those of another machine", () => {
    const elsewhere = "/Users/ada/.local/share/sandbox-sidecar/shells/zsh";
    assert.deepEqual(linkedShells(["/bin/bash", `${directory}/bash`, elsewhere, "shells/bash", `${directory}/bash`], directory), [
      `${directory}/bash`,
      elsewhere,
    ]);
    assert.deepEqual(linkedShells([elsewhere], undefined), [elsewhere]);
  });

  it("are missed if they cannot be run", async () => {
    const plain = path.join(directory, "plain");
    writeFileSync(plain, "", { mode: 0o600 });
    const gone = path.join(directory, "gone");
    assert.equal(await missingOf(["/bin/sh", gone]), gone);
    // Root may run no such file either.
    assert.equal(await missingOf([plain, gone]), plain);
    assert.equal(await missingOf(["/bin/sh"]), undefined);
    assert.equal(await missingOf([]), undefined);
  });

  it("exist for the shells of this machine, and one for all others", async () => {
    assert.ok(!(await leadTo(directory, program)));
    await makeLinks(program, directory);
    assert.ok(await leadTo(directory, program));
    assert.ok(!(await leadTo(directory, process.execPath)), "another program");
    assert.equal(await linkFor("/opt/bash", directory), path.join(directory, "bash"));
    assert.equal(await linkFor("/bin/nologin", directory), path.join(directory, "sandbox-sh"));
  });
});
