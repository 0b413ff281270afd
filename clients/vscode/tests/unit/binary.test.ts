import * as assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";

import { findProgram, ProgramNotFound } from "../../src/binary";

describe("the program", () => {
  let dir: string;
  const make = (name: string, mode = 0o755): string => {
    const file = path.join(dir, name, "sandbox-sidecar");
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, "");
    chmodSync(file, mode);
    return file;
  };
  beforeEach(() => (dir = mkdtempSync(path.join(tmpdir(), "binary-"))));
  afterEach(() => rmSync(dir, { recursive: true }));
  const at = (name: string) => path.join(dir, name);

  it("is the configured one if there is one", async () => {
    const mine = make("mine");
    make("own");
    assert.equal(await findProgram({ configured: mine, directories: [at("own")], searchPath: "" }), mine);
  });

  it("is not replaced if the configured one is missing", async () => {
    make("own");
    await assert.rejects(
      findProgram({ configured: at("none"), directories: [at("own")], searchPath: "" }),
      ProgramNotFound,
    );
  });

  it("is not searched in the working directory", async () => {
    await assert.rejects(
      findProgram({ configured: "bin/sandbox-sidecar", directories: [], searchPath: ".:bin:" }),
      ProgramNotFound,
    );
  });

  it("may be configured as a name in the search path", async () => {
    const found = make("path");
    assert.equal(
      await findProgram({
        configured: "sandbox-sidecar",
        directories: [],
        searchPath: `/does/not/exist:${at("path")}`,
      }),
      found,
    );
  });

  it("is the extension's own, else one in the search path", async () => {
    const found = make("path");
    const places = { configured: "", directories: [at("own")], searchPath: at("path") };
    assert.equal(await findProgram(places), found);
    const own = make("own");
    assert.equal(await findProgram(places), own);
  });

  it("is executable", async () => {
    make("own", 0o644);
    await assert.rejects(
      findProgram({ configured: "", directories: [at("own")], searchPath: "" }),
      /sandbox-sidecar was not found/,
    );
  });
});
