import * as assert from "node:assert/strict";

import { folderQuestion, folderSuggestion } from "../../src/folderOf";

const home = "/home/ada";
const of = (value: unknown, setting = "additional_read_only_paths") => ({ setting, value, message: "" });

describe("the folder of what was refused", () => {
  it("is asked about as the file was", () => {
    assert.deepEqual(folderQuestion(of("~/notes/list.txt"), home), { target: "/home/ada/notes", access: "read" });
    assert.deepEqual(folderQuestion(of("/srv/data/x", "tool.additional_read_write_paths"), home), {
      target: "/srv/data",
      access: "write",
    });
  });

  it("is not offered where one click would open too much", () => {
    for (const value of ["~/.bashrc", "/home/list", "/etc/passwd", "/x", "~/notes/*", "relative/x", ["~/a/b"], true])
      assert.equal(folderQuestion(of(value), home), undefined, JSON.stringify(value));
    assert.equal(folderQuestion(of("~/bin/tool", "additional_executable_paths"), home), undefined);
  });

  it("is offered only if the sidecar's judge suggests just that", () => {
    const file = of("~/notes/list.txt");
    const question = folderQuestion(file, home);
    assert.ok(question);
    const answer = { allowed: false, setting: "additional_read_only_paths", value: "~/notes" };
    assert.deepEqual(folderSuggestion(file, question, answer, home), of("~/notes"));
    for (const other of [
      { allowed: true },
      { careful: true },
      { hint: "keys are stored there" },
      { setting: "additional_read_write_paths" },
      { value: "~/" },
    ])
      assert.equal(folderSuggestion(file, question, { ...answer, ...other }, home), undefined, JSON.stringify(other));
  });
});
