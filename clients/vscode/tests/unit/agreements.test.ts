import * as assert from "node:assert/strict";

import { Agreements, lacking } from "../../src/agreements";
import type { Policy, Protections } from "../../src/protocol.gen";

describe("commands without a question", () => {
  it("run under the policy by which they were judged, once each", () => {
    const agreements = new Agreements();
    agreements.note("make", "p1");
    agreements.note("make", "p2");
    agreements.note("ls", "p3");
    assert.equal(agreements.take("make"), "p1");
    assert.equal(agreements.take("make"), "p2");
    assert.equal(agreements.take("make"), undefined);
    assert.equal(agreements.take("rm"), undefined);
    assert.equal(agreements.take("ls"), "p3");
  });

  it("that never run are forgotten", () => {
    const agreements = new Agreements();
    for (let i = 0; i < 1000; i++) agreements.note(`command ${i}`, "p");
    assert.equal(agreements.take("command 0"), undefined);
    assert.equal(agreements.take("command 999"), "p");
  });

  it("need every protection that the policy asks for", () => {
    const policy = { restricted: true, allowNetwork: true, protectedPaths: ["/p/.git"], privateCaches: [] };
    const of = (status: "enforced" | "degraded") => ({ status, mechanism: "m", detail: "d" });
    const all: Protections = { filesystem: of("enforced"), protected_paths: of("enforced"), network: of("degraded") };
    assert.deepEqual(lacking(all, policy as unknown as Policy), []);
    assert.deepEqual(lacking(all, { ...policy, allowNetwork: false } as unknown as Policy), ["network"]);
    assert.deepEqual(lacking({ ...all, protected_paths: of("degraded") }, policy as unknown as Policy), ["protected_paths"]);
  });
});
