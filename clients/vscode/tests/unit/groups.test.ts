import * as assert from "node:assert/strict";

import { groupOf } from "../../src/group";

describe("the group of an agent's command", () => {
  const uri = (path: string, more = {}) => ({ sessionResource: { scheme: "vscode-chat", authority: "", path, ...more } });

  it("is that of the chat, if the editor names it", () => {
    assert.equal(groupOf(uri("/1")), groupOf({ ...uri("/1", { fsPath: "/1" }), sessionId: "x" }));
    assert.notEqual(groupOf(uri("/1")), groupOf(uri("/2")));
    assert.notEqual(groupOf(uri("/1")), groupOf(uri("/1", { query: "x" })));
    assert.notEqual(groupOf({ sessionId: "1" }), groupOf({ sessionId: "2" }));
    assert.ok(Buffer.byteLength(groupOf({ sessionId: "ä".repeat(10_000) })) <= 256);
  });

  it("is the same for all others", () => {
    for (const token of [undefined, null, {}, "chat", 7, { sessionId: null }, { sessionResource: {} }])
      assert.equal(groupOf(token), "agent");
  });
});
