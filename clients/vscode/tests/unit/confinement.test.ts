import * as assert from "node:assert/strict";

import { ignored, keptHere, plan, undo, write, type Shell, type Target } from "../../src/confinement";

const shell: Shell = { name: "bash (sandbox)", path: "/s/bash", args: ["-l"] };
const profile = { path: "/s/bash", args: ["-l"], icon: "shield" };
const key = (name: string) => `terminal.integrated.${name}.linux`;
const chat = "chat.tools.terminal.terminalProfile.linux";

/** Settings of a file. Those in locked cannot be written. */
class File implements Target {
  constructor(
    readonly values: Record<string, unknown> = {},
    readonly locked: string[] = [],
    readonly unknown: string[] = [],
  ) {}

  has(name: string): boolean {
    return !this.unknown.includes(name);
  }

  get(name: string): unknown {
    return this.values[name];
  }

  set(name: string, value: unknown): Promise<void> {
    if (this.locked.includes(name)) return Promise.reject(new Error(`${name} is set by a policy`));
    if (value === undefined) Reflect.deleteProperty(this.values, name);
    else this.values[name] = copy(value);
    return Promise.resolve();
  }
}

const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
const confine = async (file: File) => {
  const changes = plan(file, "linux", shell, []);
  return { changes, ...(await write(file, changes)) };
};

describe("settings that confine everything", () => {
  it("are written to an empty file, and taken back", async () => {
    const file = new File();
    const { written, failed } = await confine(file);
    assert.deepEqual(failed, []);
    assert.deepEqual(file.values, {
      [key("profiles")]: { "bash (sandbox)": profile },
      [key("defaultProfile")]: "bash (sandbox)",
      [key("automationProfile")]: { path: "/s/bash" },
      [key("agentHostProfile")]: { path: "/s/bash" },
      [chat]: { path: "/s/bash" },
    });
    // What is kept survives the editor's end as JSON.
    assert.deepEqual((await undo(file, copy(written))).changed, []);
    assert.deepEqual(file.values, {});
  });

  it("leave out what this version of the editor does not know", async () => {
    const file = new File({}, [], [chat]);
    const { written } = await confine(file);
    assert.deepEqual(
      written.map((change) => change.key),
      ["profiles", "defaultProfile", "automationProfile", "agentHostProfile"].map(key),
    );
  });

  it("replace the user's values, and bring exactly those back", async () => {
    const before = {
      [key("profiles")]: { zsh: { path: "zsh", args: ["-l"] }, "bash (sandbox)": { path: "other" }, fish: null },
      [key("defaultProfile")]: "zsh",
      [key("automationProfile")]: null,
      [chat]: { path: "/bin/zsh", env: { A: "b" } },
    };
    const file = new File(copy(before));
    const { written } = await confine(file);
    assert.deepEqual(Object.keys(file.values[key("profiles")] as object), ["zsh", "bash (sandbox)", "fish"]);
    assert.deepEqual(await undo(file, copy(written)), {
      restored: written.map((change) => change.key),
      changed: [],
      failed: [],
    });
    assert.deepEqual(file.values, before);
  });

  it("keep the user's values if they are written twice", async () => {
    const before = { [key("defaultProfile")]: "zsh" };
    const file = new File(copy(before));
    const first = await confine(file);
    const again = plan(file, "linux", { ...shell, path: "/t/bash" }, first.written);
    await write(file, again);
    assert.deepEqual(file.values[key("automationProfile")], { path: "/t/bash" });
    await undo(file, again);
    assert.deepEqual(file.values, before);
  });

  it("stay if the user has changed them since", async () => {
    const file = new File({ [key("automationProfile")]: { path: "/bin/sh" } });
    const { written } = await confine(file);
    file.values[key("defaultProfile")] = "fish";
    (file.values[key("profiles")] as Record<string, unknown>)["mine"] = { path: "mine" };
    const result = await undo(file, written);
    assert.deepEqual(result.changed, [key("defaultProfile")]);
    assert.deepEqual(file.values, {
      [key("profiles")]: { mine: { path: "mine" } },
      [key("defaultProfile")]: "fish",
      [key("automationProfile")]: { path: "/bin/sh" },
    });
  });

  it("keep a profile of ours that the user has changed", async () => {
    const file = new File();
    const { written } = await confine(file);
    const changed = { "bash (sandbox)": { path: "/s/bash", color: "red" } };
    file.values[key("profiles")] = changed;
    assert.deepEqual((await undo(file, written)).changed, [key("profiles")]);
    assert.deepEqual(file.values, { [key("profiles")]: changed });
  });

  it("are written as far as no policy forbids it", async () => {
    const file = new File({ [chat]: "locked" }, [chat]);
    const { written, failed } = await confine(file);
    assert.deepEqual(
      failed.map((failure) => failure.key),
      [chat],
    );
    assert.equal(file.values[key("defaultProfile")], "bash (sandbox)");
    await undo(file, written);
    assert.deepEqual(file.values, { [chat]: "locked" });
  });

  it("are kept on this machine by Settings Sync, and only as long as they are ours", async () => {
    const file = new File({ [ignored]: ["mine"] });
    const first = keptHere(file, ["a", "b"]);
    assert.ok(first);
    await write(file, [first]);
    assert.deepEqual(file.values[ignored], ["mine", "a", "b"]);
    // Written twice, the user's own stay known.
    const again = keptHere(file, ["a", "b"], first);
    assert.deepEqual(again, first);
    (file.values[ignored]).push("later");
    assert.deepEqual((await undo(file, [first])).changed, []);
    assert.deepEqual(file.values[ignored], ["mine", "later"]);
    const empty = new File();
    const change = keptHere(empty, ["a"]);
    assert.ok(change);
    await write(empty, [change]);
    await undo(empty, [change]);
    assert.deepEqual(empty.values, {});
    assert.equal(keptHere(new File({}, [], [ignored]), ["a"]), undefined);
    // What another command needs stays, in either order.
    await write(empty, [change]);
    await undo(empty, [change], ["a"]);
    assert.deepEqual(empty.values, { [ignored]: ["a"] });
  });

  it("are taken back later if that fails once", async () => {
    const file = new File();
    const { written } = await confine(file);
    file.locked.push(chat);
    const { failed } = await undo(file, written);
    assert.deepEqual(
      failed.map((failure) => failure.key),
      [chat],
    );
    file.locked.pop();
    await undo(file, written);
    assert.deepEqual(file.values, {});
  });
});
