import * as assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import * as path from "node:path";

import { shortQuestion, shortReason } from "../../src/denialText";
import { brief } from "../../src/display";
import { kindOf } from "../../src/kinds";
import { completions, resolved } from "../../src/pathCompletion";
import { Refusals } from "../../src/refused";
import { suggestedWord } from "../../src/suggestedWord";

describe("a notification", () => {
  it("of a question has one line, with the end of a path", () => {
    const waits = ", and waits for your answer.";
    assert.equal(shortQuestion(`"cat" wants to read "/a/b"${waits}`), '"cat" wants to read "/a/b"');
    const long = shortQuestion(`"python3" wants to write "/home/ada/data/models/of-the-year/list.txt"${waits}`);
    assert.equal(long, '"python3" wants to write "/…/of-the-year/list.txt"');
    const name = shortQuestion(`"cat" wants to read "/a${waits}/${"n".repeat(90)}"${waits}`);
    assert.ok(name.length <= 54 && name.endsWith('"') && !name.includes("waits"), name);
  });

  it("is shortened in its longest name, so that its words stay", () => {
    const name = "/home/ada/".concat("x".repeat(200), "/list.txt");
    const text = brief(`The sandbox refused to let "bash" write "${name}".`, 100);
    assert.equal(text, 'The sandbox refused to let "bash" write "/…/list.txt".');
    assert.equal(brief("short", 100), "short");
    assert.equal(brief(`It refused "a. B". ${"More words. ".repeat(20)}`, 100), 'It refused "a. B".');
    const words = "word ".repeat(40).trimEnd();
    assert.equal(brief(words, 100), words);
    const two = brief(`It let "${"a".repeat(60)}" read "${"b".repeat(90)}".`, 60);
    assert.match(two, /^It let "a+…a+" read "b+…b+"\.$/);
    assert.ok(two.length <= 60, two);
  });

  it("is shown by one module, which shortens it", () => {
    const sources = path.join(__dirname, "..", "..", "src");
    for (const name of readdirSync(sources)) {
      const text = readFileSync(path.join(sources, name), "utf8");
      for (const [call] of text.matchAll(/window\s*\.show(Information|Warning|Error)Message\([^;]*;/g))
        assert.ok(name === "notices.ts" || call.includes("modal: true"), `${name}: ${call}`);
    }
  });
});

describe("a row of what was refused", () => {
  it("names the reason if there is no setting, whatever its length", () => {
    for (const [hint, want] of [
      ["careful: SSH keys are stored there, so no setting is suggested", "Careful: SSH keys"],
      ["programs outside of the sandbox run what is in it; a session never writes it", "Programs outside of the sandbox run what is in it"],
      ["see docs.example.com for more. It is long", "See docs.example.com for more"],
      ["", undefined],
      [undefined, undefined],
    ] as const)
      assert.equal(shortReason(hint), want);
  });
});

describe("the kind of a warning", () => {
  it("has no names and numbers in it", () => {
    assert.equal(kindOf('process 4711 of "a \\"b" stays'), kindOf('process 12 of "c" stays'));
    assert.notEqual(kindOf('"a" is missing'), kindOf('"a" is wrong'));
  });
});

describe("a quick fix", () => {
  it("writes only a plain word", () => {
    assert.equal(suggestedWord('unknown setting, did you mean "allow_network"?'), "allow_network");
    assert.equal(suggestedWord('did you mean "a\\"]"?'), undefined);
    assert.equal(suggestedWord("unknown setting"), undefined);
  });
});

describe("what was refused", () => {
  const denial = (target: string, setting?: string) => ({
    sessionId: "s",
    message: target,
    access: "read",
    target,
    count: 1,
    ...(setting === undefined ? {} : { suggestion: { setting, value: "~/notes", message: "" } }),
  });

  it("is grouped by the setting that would allow it, the newest first", () => {
    const refusals = new Refusals();
    assert.equal(refusals.add(denial("/a", "x")), undefined);
    refusals.add(denial("/b"));
    refusals.add(denial("/c", "x"));
    assert.equal(refusals.add(denial("/a", "x"))?.total, 1);
    assert.deepEqual(
      refusals.groups().map((group) => [group.suggestion?.setting, group.refusals.map((one) => one.denial.target)]),
      [
        ["x", ["/a", "/c"]],
        [undefined, ["/b"]],
      ],
    );
    assert.equal(refusals.groups()[0]?.refusals[0]?.total, 2);
  });

  it("is bounded", () => {
    const refusals = new Refusals();
    for (let i = 0; i < 500; i++) refusals.add(denial(`/${i}`));
    assert.equal(refusals.size, 200);
  });
});

describe("a path that is typed", () => {
  it("is relative to the project, unless it says otherwise", () => {
    const at = (typed: string) => resolved(typed, "/home/ada/engine");
    assert.deepEqual(["src/a.c", "./a", "../b", "/etc", "~/x", "~", "abstract:y"].map(at), [
      "/home/ada/engine/src/a.c",
      "/home/ada/engine/a",
      "/home/ada/b",
      "/etc",
      "~/x",
      "~/",
      "abstract:y",
    ]);
  });

  it("is completed as it is written", async () => {
    const dir = mkdtempSync(path.join(tmpdir(), "complete."));
    try {
      mkdirSync(path.join(dir, "src", "deep"), { recursive: true });
      writeFileSync(path.join(dir, "src", "main.c"), "");
      writeFileSync(path.join(dir, ".hidden"), "");
      assert.deepEqual(await completions("", dir), ["src/"]);
      assert.deepEqual(await completions(".", dir), [".hidden"]);
      assert.deepEqual(await completions("src/", dir), ["src/deep/", "src/main.c"]);
      assert.deepEqual(await completions("./src/m", dir), ["./src/main.c"]);
      assert.deepEqual(await completions(`${dir}/s`, "/"), [`${dir}/src/`]);
      assert.deepEqual(await completions("nowhere/", dir), []);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
