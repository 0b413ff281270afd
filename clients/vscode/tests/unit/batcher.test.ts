import * as assert from "node:assert/strict";
import { mock } from "node:test";

import { Batcher, commandDelay } from "../../src/batcher";

describe("the batcher", () => {
  let delivered: { at: number; text: string }[];
  let batcher: Batcher<number>;
  beforeEach(() => {
    mock.timers.enable({ apis: ["setTimeout", "Date"] });
    delivered = [];
    const record = (text: string) => delivered.push({ at: Date.now(), text });
    batcher = new Batcher<number>(
      (what) => record(`${what}`),
      (all) => record(`sum of ${all.length}`),
    );
  });
  afterEach(() => mock.timers.reset());

  /** Adds items, and advances the clock after each one. */
  const arrive = (count: number, every: number) => {
    for (let i = 1; i <= count; i++) {
      batcher.add(i);
      mock.timers.tick(every);
    }
  };
  const texts = () => delivered.map(({ text }) => text);
  const singles = () => texts().filter((text) => !text.startsWith("sum"));
  const summed = () =>
    texts()
      .flatMap((text) => /^sum of (\d+)$/.exec(text)?.[1] ?? [])
      .map(Number);
  /** The number of items in all notifications. */
  const all = () => singles().length + summed().reduce((a, b) => a + b, 0);

  it("delivers one item at once, and as it is", () => {
    arrive(1, 300);
    assert.deepEqual(texts(), ["1"]);
    mock.timers.tick(10_000);
    arrive(1, 300);
    assert.deepEqual(texts(), ["1", "1"]);
  });

  it("makes one message of what one command causes", () => {
    arrive(2, 0);
    mock.timers.tick(300);
    assert.deepEqual(texts(), ["sum of 2"]);
  });

  it("delays further items, but delivers them singly", () => {
    arrive(3, 2000);
    mock.timers.tick(1000);
    assert.deepEqual(texts(), ["1", "2", "3"]);
  });

  it("waits longer for the first batch where that is asked for", () => {
    batcher = new Batcher<number>(
      (what) => delivered.push({ at: Date.now(), text: `${what}` }),
      (all) => delivered.push({ at: Date.now(), text: `sum of ${all.length}` }),
      commandDelay,
    );
    arrive(3, 600);
    mock.timers.tick(10_000);
    assert.deepEqual(texts(), ["sum of 3"]);
    arrive(1, commandDelay);
    assert.deepEqual(texts(), ["sum of 3", "1"]);
  });

  it("summarizes many items that arrive together", () => {
    arrive(100, 0);
    mock.timers.tick(1000);
    assert.deepEqual(texts(), ["sum of 100"]);
  });

  it("makes at most two summaries of a hundred items at the sidecar's rate", () => {
    arrive(20, 0);
    arrive(80, 60);
    mock.timers.tick(60_000);
    assert.ok(summed().length <= 2 && singles().length <= 2, texts().join());
    assert.equal(all(), 100);
  });

  it("makes at most four messages of a hundred items on a slow machine", () => {
    arrive(100, 160);
    assert.ok(delivered.length <= 4, texts().join());
    mock.timers.tick(60_000);
    assert.equal(all(), 100);
  });

  it("delivers a lasting burst at growing intervals, and loses nothing", () => {
    arrive(20 * 600, 50); // ten minutes
    mock.timers.tick(60_000);
    assert.equal(all(), 20 * 600);
    assert.ok(delivered.length < 20, texts().join());
  });

  it("limits the rate of single items that never end", () => {
    arrive(600, 1000); // ten minutes
    mock.timers.tick(60_000);
    assert.equal(all(), 600);
    // Two singles in ten seconds, and the summaries.
    assert.ok(singles().length <= 2 * 60 && summed().length < 20, texts().join());
  });

  it("delivers singly again after a burst", () => {
    arrive(100, 0);
    mock.timers.tick(11_000);
    arrive(1, 300);
    assert.deepEqual(texts(), ["sum of 100", "1"]);
  });
});
