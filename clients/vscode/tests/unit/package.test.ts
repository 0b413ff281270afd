import * as assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import * as path from "node:path";
import { inflateRawSync } from "node:zlib";

const root = path.join(__dirname, "..", "..");

/** The files of a .vsix, which is a zip archive, by name. */
function unpacked(file: string): Map<string, Buffer> {
  const zip = readFileSync(file);
  const end = zip.lastIndexOf("PK\u0005\u0006", undefined, "latin1");
  assert.ok(end > 0, `${file} is no archive`);
  const files = new Map<string, Buffer>();
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const [method, size] = [zip.readUInt16LE(at + 10), zip.readUInt32LE(at + 20)];
    const [name, extra, comment] = [zip.readUInt16LE(at + 28), zip.readUInt16LE(at + 30), zip.readUInt16LE(at + 32)];
    const local = zip.readUInt32LE(at + 42);
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const bytes = zip.subarray(start, start + size);
    // The sidecar itself is large, and nothing here reads it.
    const text = zip.toString("utf8", at + 46, at + 46 + name);
    const isProgram = text.startsWith("extension/bin/");
    files.set(text, isProgram ? Buffer.alloc(0) : method === 0 ? bytes : inflateRawSync(bytes));
    at += 46 + name + extra + comment;
  }
  return files;
}

describe("the package", () => {
  let files: Map<string, Buffer>;
  before(() => (files = unpacked(process.env["VSIX"] ?? "")));
  const read = (pattern: RegExp) => {
    const found = [...files].filter(([name]) => pattern.test(name));
    assert.equal(found.length, 1, [...files.keys()].join("\n"));
    return found[0]?.[1].toString("utf8") ?? "";
  };

  it("has a README whose pictures and links lead to files of the repository", () => {
    const readme = read(/^extension\/readme\.md$/i);
    const base = "https://github.com/sandbox-sidecar/sandbox-sidecar";
    const all = [...readme.matchAll(/(!?)\[[^\]]*\]\(([^)\s]+)\)/g)].map(([, mark, target]) => ({ mark, target: target ?? "" }));
    assert.equal(all.filter(({ mark }) => mark === "!").length, 4, readme);
    for (const { mark, target } of all) {
      assert.match(target, /^https:/, "a relative link leads nowhere in the editor");
      if (!target.startsWith(`${base}/`)) continue;
      const [, kind, file] = /^\/(raw|blob)\/HEAD\/(.*)$/.exec(target.slice(base.length)) ?? [];
      assert.equal(kind, mark === "!" ? "raw" : "blob", target);
      assert.ok(existsSync(path.join(root, "..", "..", file ?? "")), `${target} is no file`);
    }
  });

  it("has a changelog of its own, which begins with its version", () => {
    const { version } = JSON.parse(read(/^extension\/package\.json$/)) as { version: string };
    const changelog = read(/^extension\/changelog\.md$/i);
    assert.equal(/^## (\S+)/m.exec(changelog)?.[1], version);
    assert.doesNotMatch(changelog, /unreleased/i);
  });

  it("names the software of others that it contains", () => {
    const notices = read(/^extension\/ThirdPartyNotices\.txt$/);
    for (const name of ["jsonc-parser", "vscode-jsonrpc"])
      assert.match(notices, new RegExp(`^${name} \\d+\\.\\d+\\.\\d+$`, "m"));
    // The sidecar's modules are named if it is in the package.
    assert.equal(/^golang\.org\/x\/sys v/m.test(notices), files.has("extension/bin/sandbox-sidecar"));
    assert.match(notices, /Copyright \(c\) Microsoft/);
    assert.doesNotMatch(notices, /^esbuild /m, "only what is in the package");
  });
});
