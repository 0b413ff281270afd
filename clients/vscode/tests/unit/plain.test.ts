import * as assert from "node:assert/strict";

import { Excerpt, plain } from "../../src/plain";

describe("plain", () => {
  for (const [name, text, want] of [
    ["colours go", "\u001b[1;31mred\u001b[0m\r\n", "red\n"],
    ["titles go", "\u001b]0;title\u0007text", "text"],
    ["strings go", "\u001bPdata\u001b\\text", "text"],
    ["a progress bar keeps its last state", "10%\r50%\r100%\r\ndone", "100%\ndone"],
    ["bold of manuals", "b\bbo\bol\bld\bd", "bold"],
    ["control characters go, tabs stay", "a\u0000\u0007b\tc", "ab\tc"],
    ["a carriage return at the end stays harmless", "half\r", "half"],
  ] as const) {
    it(name, () => assert.equal(plain(text), want));
  }
});

describe("an excerpt", () => {
  const note = (missing: number) => `<${missing}>`;

  it("is everything if it is short", () => {
    const excerpt = new Excerpt(100);
    excerpt.add(Buffer.from("one "));
    excerpt.add(Buffer.from("two"));
    assert.deepEqual(excerpt.text(note), { text: "one two", missing: 0 });
  });

  it("is the beginning and the end if it is long, however it is split", () => {
    const all = Array.from({ length: 5000 }, (_, i) => `${i}\n`).join("");
    for (const piece of [1, 7, 4096, 1_000_000]) {
      const excerpt = new Excerpt(100);
      for (let i = 0; i < all.length; i += piece) excerpt.add(Buffer.from(all.slice(i, i + piece)));
      const { text, missing } = excerpt.text(note);
      assert.equal(missing, all.length - 100);
      assert.equal(text, `${all.slice(0, 25)}\n<${missing}>\n${all.slice(-75)}`);
    }
  });

  it("contains no partial characters", () => {
    const excerpt = new Excerpt(10);
    excerpt.add(Buffer.from("ä".repeat(50)));
    const { text } = excerpt.text(note);
    assert.match(text, /^ä+\n<\d+>\nä+$/);
  });
});
