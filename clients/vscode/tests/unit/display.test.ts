import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as path from "node:path";

import { json, line, lines, quote, shortPath, text } from "../../src/display";

interface Case {
  in: string;
  text: string;
  quote: string;
  line: string;
}

describe("untrusted text", () => {
  it("is escaped as by the sidecar", () => {
    const file = path.join(__dirname, "..", "..", "..", "..", "display", "testdata", "cases.json");
    const cases = JSON.parse(readFileSync(file, "utf8")) as Case[];
    assert.ok(cases.length > 20, `${cases.length} cases`);
    for (const c of cases) {
      assert.deepEqual({ in: c.in, text: text(c.in), quote: quote(c.in), line: line(c.in) }, c);
    }
  });

  it("loses the middle of a path, and keeps its name", () => {
    for (const [path, limit, want] of [
      ["~/notes/list.txt", 16, "~/notes/list.txt"],
      ["~/notes/list.txt", 15, "~/…/list.txt"],
      ["/usr/share/a/b/c.txt", 13, "/…/a/b/c.txt"],
      ["/usr/share/a/b/c.txt", 11, "/…/b/c.txt"],
      ["~/a/rather-long-name.txt", 12, "…/rathe….txt"],
      ["registry.example.com:443", 12, "regist…m:443"],
      ["/a\u202e/\n/b", 40, "/a\\u202e/\\n/b"],
      ["/aaaaaaaaaa/\n/b", 7, "/…/\\n/b"],
    ] as const) {
      const got = shortPath(path, limit);
      assert.equal(got, want);
      assert.ok(Array.from(got).length <= limit, got);
    }
  });

  it("keeps its value as JSON, without invisible characters", () => {
    const value = { "a\u202e": 'b\u007f\u200b\u{e0041}\u0085ü日"\\<\n' };
    assert.deepEqual(JSON.parse(json(value)), value);
    assert.match(json(value), /^[ -~ü日]*$/);
  });

  it("keeps its lines as code, without invisible characters", () => {
    assert.equal(lines("a\n\tb\u202e\u001b[2J\r"), "a\n\tb\\u202e\\x1b[2J\\r");
  });
});
