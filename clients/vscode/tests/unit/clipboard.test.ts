import * as assert from "node:assert/strict";

import { ClipboardFilter } from "../../src/clipboard";

/** Filters a text, both whole and character by character. */
function pass(text: string): string {
  const whole = new ClipboardFilter().pass(text);
  const filter = new ClipboardFilter();
  const pieces = Array.from(text, (character) => filter.pass(character)).join("");
  assert.equal(pieces, whole, "it depends on where the pieces are cut");
  return whole;
}

describe("the clipboard filter", () => {
  for (const [name, text] of [
    ["ended by BEL", "\u001b]52;c;ZXZpbA==\u0007"],
    ["ended by ST", "\u001b]52;c;ZXZpbA==\u001b\\"],
    ["that reads", "\u001b]52;c;?\u0007"],
    ["introduced by one character", "\u009d52;c;ZXZpbA==\u009c"],
    ["with leading zeros", "\u001b]0052;c;ZXZpbA==\u0007"],
    ["with control characters in its number", "\u001b]5\u00012;c;ZXZpbA==\u0007"],
    ["with a control character before its bracket", "\u001b\u0001]52;c;ZXZpbA==\u0007"],
    ["after an escape that leads nowhere", "\u001b\u001b]52;c;ZXZpbA==\u0007"],
    ["within a title", "\u001b]0;title\u001b]52;c;ZXZpbA==\u0007"],
    ["within a title, introduced by one character", "\u001b]0;title\u009d52;c;ZXZpbA==\u0007"],
  ] as const) {
    it(`removes a sequence ${name}`, () => {
      const left = pass(`before${text}after`);
      assert.doesNotMatch(left, /ZXZpbA|52;/);
      assert.match(left, /^before/);
      assert.match(left, /after$/);
    });
  }

  for (const [name, text] of [
    ["plain text", "äöü 漢字 🙂\r\n"],
    ["colours", "\u001b[31mred\u001b[0m"],
    ["titles", "\u001b]0;a title\u0007"],
    ["links", "\u001b]8;;https://example.com\u001b\\link\u001b]8;;\u001b\\"],
    ["shell integration", "\u001b]633;P;Cwd=/tmp\u0007"],
    ["a number that only begins alike", "\u001b]520;x\u0007"],
    ["a sequence without a number", "\u001b]P0000000"],
    ["character sets", "\u001b(B"],
  ] as const) {
    it(`lets ${name} through`, () => assert.equal(pass(text), text));
  }

  it("keeps a number of limited length", () => {
    assert.equal(pass(`\u001b]${"1".repeat(100_000)};x\u0007after`), "after");
  });
});
