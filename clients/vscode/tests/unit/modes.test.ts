import * as assert from "node:assert/strict";

import { parse } from "jsonc-parser";

import { turnedOff, turnedOn, withMode } from "../../src/modes";

interface File {
  terminal: { sandbox: Record<string, unknown> };
  linux?: { terminal: { sandbox: Record<string, unknown> } };
}

const read = (text: string) => parse(text) as File;

describe("turning the sandbox on and off", () => {
  const file = `{
  // mine
  "terminal": { "sandbox": { "enabled": false, "toolchains": ["go"] } }
}
`;

  it("changes only what it says", () => {
    const on = turnedOn(file, "linux", "tool", undefined);
    assert.deepEqual(read(on).terminal.sandbox, { enabled: true, toolchains: ["go"], apply_to: "tool" });
    assert.match(on, /\/\/ mine/);
    assert.deepEqual(read(turnedOff(on, "linux")).terminal.sandbox, {
      enabled: false,
      toolchains: ["go"],
      apply_to: "tool",
    });
  });

  it("makes a file that was empty", () => {
    assert.deepEqual(read(turnedOff("", "linux")).terminal.sandbox, { enabled: false });
  });

  it("leaves the mode, unless that is off", () => {
    assert.equal(read(turnedOn(file, "linux", "both", "off")).terminal.sandbox["mode"], "standard");
    assert.equal(read(turnedOn(file, "linux", "both", "strict")).terminal.sandbox["mode"], undefined);
  });

  it("chooses a mode, and no key beside it overrides that", () => {
    const own = `{ "terminal": { "sandbox": { "enabled": false } }, "linux": { "terminal": { "sandbox": { "enabled": false } } } }`;
    const changed = read(withMode(own, "linux", "strict"));
    assert.deepEqual(changed.terminal.sandbox, { mode: "strict" });
    assert.deepEqual(changed.linux?.terminal.sandbox, {});
  });
});
