import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as path from "node:path";

import { doctorPage } from "../../src/doctorText";

const attack = { attack: "read a file outside", unsandboxed: "works", session: "EACCES", status: "enforced" };
const protection = { name: "filesystem", status: "enforced", mechanism: "landlock", detail: "d ".repeat(90), attacks: [] };

function shown(...protections: object[]): string[] {
  return doctorPage(JSON.stringify({ protections }), "").text.split("\n");
}

describe("the doctor's page", () => {
  it("says first whether there is anything to do", () => {
    const denials = { ...protection, name: "denials", status: "degraded" };
    assert.equal(shown(protection)[0], "This machine enforces every protection.");
    assert.equal(shown(protection, denials)[0], "This machine enforces every protection. See the notes: denials.");
    assert.ok(shown(protection, denials).includes("NOTES: THESE PROTECT NO FILE"));
    const lacking = { ...protection, name: "network", status: "absent", fix: "load the module" };
    const lines = shown(protection, lacking);
    assert.equal(lines[0], "This machine does not fully enforce 1 of 2 protections.");
    assert.ok(lines.indexOf("  absent    network") < lines.indexOf("  enforced  filesystem"), lines.join("\n"));
    assert.ok(lines.includes("            fix: load the module"));
  });

  it("names a claim that does not hold in its second line", () => {
    const lines = shown({ ...protection, attacks: [{ ...attack, verdict: "held" }, { ...attack, verdict: "broken" }] });
    assert.equal(lines[1], "BROKEN: 1 of its claims does not hold. See the end.");
    assert.ok(lines.includes("  BROKEN    read a file outside"), lines.join("\n"));
    assert.ok(!shown({ ...protection, attacks: [{ ...attack, verdict: "held" }] }).join("\n").includes("BROKEN"));
  });

  it("is wrapped once, by the editor", () => {
    assert.ok(shown(protection).includes(`            ${"d ".repeat(90)}`), shown(protection).join("\n"));
    const manifest = path.join(__dirname, "..", "..", "package.json");
    const { contributes } = JSON.parse(readFileSync(manifest, "utf8")) as {
      contributes: { configurationDefaults: Record<string, Record<string, unknown>> };
    };
    assert.equal(contributes.configurationDefaults["[sandbox-report]"]?.["editor.wordWrap"], "on");
  });

  it("shows what is no JSON as it is", () => {
    assert.equal(doctorPage("no\u202e JSON", "").text, "no\\u202e JSON");
  });
});
