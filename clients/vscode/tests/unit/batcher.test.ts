import * as assert from "node:assert/strict";
import { mock } from "node:test";

import { Batcher } from "../../src/batcher";

describe("what is told", () => {
  let told: { at: number; text: string }[];
  let batcher: Batcher<number>;
  beforeEach(() => {
    mock.timers.enable({ apis: ["setTimeout", "Date"] });
    told = [];
    const say = (text: string) => told.push({ at: Date.now(), text });
    batcher = new Batcher<number>(
      (what) => say(`${what}`),
      (all) => say(`sum of ${all.length}`),
    );
  });
  afterEach(() => mock.timers.reset());

  /** Adds so many things, one each time that some milliseconds have passed. */
  const come = (count: number, every: number) => {
    for (let i = 1; i <= count; i++) {
      batcher.add(i);
      mock.timers.tick(every);
    }
  };
  const texts = () => told.map(({ text }) => text);
  const singles = () => texts().filter((text) => !text.startsWith("sum"));
  const summed = () =>
    texts()
      .flatMap((text) => /^sum of (\d+)$/.exec(text)?.[1] ?? [])
      .map(Number);
  /** How many things were told of, in one way or the other. */
  const all = () => singles().length + summed().reduce((a, b) => a + b, 0);

  it("comes one by one where there is little, at once", () => {
    come(2, 0);
    mock.timers.tick(300);
    assert.deepEqual(texts(), ["1", "2"]);
    mock.timers.tick(10_000);
    come(1, 300);
    assert.deepEqual(texts(), ["1", "2", "1"]);
  });

  it("comes a little later where it is a little more, and one by one all the same", () => {
    come(3, 2000);
    mock.timers.tick(1000);
    assert.deepEqual(texts(), ["1", "2", "3"]);
  });

  it("is one sum of many that come together", () => {
    come(100, 0);
    mock.timers.tick(1000);
    assert.deepEqual(texts(), ["sum of 100"]);
  });

  it("is two sums at most of a hundred that a session tells at its pace, however late they come", () => {
    come(20, 0);
    come(80, 60);
    mock.timers.tick(60_000);
    assert.ok(summed().length <= 2 && singles().length <= 2, texts().join());
    assert.equal(all(), 100);
  });

  it("is four messages at most of a hundred that come one by one, on a slow machine", () => {
    come(100, 160);
    assert.ok(told.length <= 4, texts().join());
    mock.timers.tick(60_000);
    assert.equal(all(), 100);
  });

  it("becomes rarer where it does not end, and leaves nothing out", () => {
    come(20 * 600, 50); // ten minutes
    mock.timers.tick(60_000);
    assert.equal(all(), 20 * 600);
    assert.ok(told.length < 20, texts().join());
  });

  it("does not pile up where little comes, but for ever", () => {
    come(600, 1000); // ten minutes
    mock.timers.tick(60_000);
    assert.equal(all(), 600);
    // Two in ten seconds at once, and the sums.
    assert.ok(singles().length <= 2 * 60 && summed().length < 20, texts().join());
  });

  it("comes one by one again when the crowd is over", () => {
    come(100, 0);
    mock.timers.tick(11_000);
    come(1, 300);
    assert.deepEqual(texts(), ["sum of 100", "1"]);
  });
});
