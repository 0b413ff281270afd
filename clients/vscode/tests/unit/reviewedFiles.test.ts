import * as assert from "node:assert/strict";

import { files } from "../../src/reviewedFiles";

describe("the files of a review", () => {
  it("are those of groups, too", () => {
    const finding = { change: "created", why: "make runs it", message: "" };
    assert.deepEqual(
      files([
        { ...finding, path: "/p/Makefile" },
        { ...finding, path: "/p/a", others: ["/p/b", "/p/c"], change: "changed" },
      ]).map(({ path, change }) => `${path} ${change}`),
      ["/p/Makefile created", "/p/a changed", "/p/b changed", "/p/c changed"],
    );
  });
});
