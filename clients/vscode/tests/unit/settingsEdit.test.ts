import * as assert from "node:assert/strict";

import { parse } from "jsonc-parser";

import { settingOf, withSetting, withSuggestion } from "../../src/settingsEdit";

describe("a setting that is written", () => {
  const file = `// mine
{
  "theme": "One Dark", // looks
  "terminal": {
    "sandbox": {
      "enabled": true,
      "additional_read_only_paths": ["~/notes"], // a list
    },
  },
}
`;

  it("leaves everything else as it was, comments too", () => {
    const text = withSetting(file, "linux", "additional_read_only_paths", ["~/notes", "~/.ssh/config"]);
    assert.match(text, /^\/\/ mine/);
    assert.match(text, /\/\/ looks/);
    assert.match(text, /\/\/ a list/);
    assert.deepEqual(parse(text), {
      theme: "One Dark",
      terminal: { sandbox: { enabled: true, additional_read_only_paths: ["~/notes", "~/.ssh/config"] } },
    });
  });

  it("may be new, also in a new file", () => {
    const want = { terminal: { sandbox: { allow_network: true } } };
    for (const text of ["", "{}", "{\n}\n"])
      assert.deepEqual(parse(withSetting(text, "linux", "allow_network", true)), want);
    const sandbox = (parse(withSetting(file, "linux", "allow_network", true)) as typeof want).terminal.sandbox;
    assert.equal(sandbox.allow_network, true);
  });

  it("may stand in the block for one kind of session", () => {
    assert.deepEqual(settingOf({ tool: { toolchains: ["go"] } }, "tool.toolchains"), ["go"]);
    assert.equal(settingOf({ toolchains: ["go"] }, "tool.toolchains"), undefined);
    assert.deepEqual(parse(withSetting("{}", "linux", "tool.toolchains", ["go"])), {
      terminal: { sandbox: { tool: { toolchains: ["go"] } } },
    });
  });

  it("goes into the platform's block if it is there", () => {
    const text = '{"linux": {"terminal": {"sandbox": {"toolchains": ["go"]}}}}';
    assert.deepEqual(parse(withSetting(text, "linux", "toolchains", ["go", "node"])), {
      linux: { terminal: { sandbox: { toolchains: ["go", "node"] } } },
    });
    assert.deepEqual(parse(withSetting(text, "macos", "toolchains", ["node"])), {
      linux: { terminal: { sandbox: { toolchains: ["go"] } } },
      terminal: { sandbox: { toolchains: ["node"] } },
    });
  });

  it("is not written into an invalid file", () => {
    assert.throws(() => withSetting('{"terminal": ', "linux", "enabled", true), /not valid JSON/);
    assert.throws(() => withSetting("[]", "linux", "enabled", true), /not valid JSON/);
  });
});

describe("a suggestion", () => {
  it("adds an entry to a list, once", () => {
    assert.deepEqual(withSuggestion(["a"], "b"), ["a", "b"]);
    assert.deepEqual(withSuggestion(["a"], "a"), ["a"]);
  });

  it("is the value itself otherwise", () => {
    assert.equal(withSuggestion(false, true), true);
    assert.deepEqual(withSuggestion(["a"], ["b"]), ["b"]);
    assert.equal(withSuggestion(undefined, true), true);
  });
});
