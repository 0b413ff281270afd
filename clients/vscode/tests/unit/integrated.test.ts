import * as assert from "node:assert/strict";

import { programOf, startDirectory, withEnvironment } from "../../src/integrated";
import { opensOurs, profileTitle } from "../../src/profileTitle";

const variables = { workspaceFolder: "/home/ada/project", userHome: "/home/ada", env: { GOPATH: "/go" } };

describe("VS Code's own settings of terminals", () => {
  it("say where a terminal starts", () => {
    for (const [cwd, want] of [
      ["", undefined],
      [null, undefined],
      ["src", "/home/ada/project/src"],
      ["${workspaceFolder}/src", "/home/ada/project/src"],
      ["~/x", "/home/ada/x"],
      ["${userHome}", "/home/ada"],
      ["/srv", "/srv"],
      ["${env:GOPATH}/src", "/go/src"],
      ["${fileDirname}", undefined],
    ] as const)
      assert.equal(startDirectory(cwd, variables), want, String(cwd));
  });

  it("set variables, and take some away", () => {
    const before = { TERM: "xterm-256color", COLORTERM: "truecolor" };
    const setting = { COLORTERM: null, A: "${workspaceFolder}/a", B: "${file}", C: 1, TERM: "x" };
    assert.deepEqual(withEnvironment(before, [setting, variables]), { TERM: "x", A: "/home/ada/project/a" });
    assert.deepEqual(withEnvironment(before, [undefined, variables]), before);
    const project = { ...variables, env: undefined };
    assert.deepEqual(
      withEnvironment({}, [{ A: "${env:GOPATH}", B: "1" }, variables], [{ B: "2", C: "${env:GOPATH}" }, project]),
      { A: "/go", B: "2" },
    );
  });
});

describe("the program of a command line", () => {
  it("is its plain name, or unknown", () => {
    for (const [line, want] of [
      ["make -j4 all", "make"],
      ["  FOO=bar /usr/bin/python3.12 x.py", "python3.12"],
      ["./build.sh", "build.sh"],
      ["", undefined],
      ["A=b", undefined],
      ["(cd x; ls)", undefined],
      ["'a b' c", undefined],
      ["⚠not-sandboxed", undefined],
      ["x".repeat(31), undefined],
    ] as const)
      assert.equal(programOf(line), want, line);
  });
});

describe("the default terminal", () => {
  it("is ours unless a profile of that name is set, or taken away", () => {
    assert.ok(opensOurs(profileTitle, { bash: { path: "bash" } }));
    assert.ok(opensOurs(profileTitle, undefined));
    assert.ok(opensOurs(profileTitle, null));
    assert.ok(!opensOurs(profileTitle, { [profileTitle]: { path: "bash" } }));
    assert.ok(!opensOurs(profileTitle, { [profileTitle]: null }));
    assert.ok(!opensOurs("bash", {}));
    assert.ok(!opensOurs(null, {}));
  });
});
