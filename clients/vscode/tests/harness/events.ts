import Mocha from "mocha";

/**
 * Reports as mocha's reporter "spec" and, if SIDECAR_EVENTS is set, prints each
 * result as "go test -json" does, for tests/ci. What fails before or after the
 * tests of a suite counts as a failure of the suite.
 */
class Events extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options?: Mocha.MochaOptions) {
    super(runner, options);
    if ((process.env["SIDECAR_EVENTS"] ?? "") === "") return;
    runner.on("pass", (test) => print("pass", test.fullTitle()));
    runner.on("pending", (test) => print("skip", test.fullTitle()));
    runner.on("fail", (test, error: Error) => {
      const title = (test.type as string) === "hook" ? (test.parent?.fullTitle() || "around all tests") : test.fullTitle();
      print("output", title, `${test.title}: ${error.stack ?? error.message}\n`);
      print("fail", title);
    });
    runner.on("end", () => print(runner.failures > 0 ? "fail" : "pass"));
  }
}

/** Without a title it is the outcome of all tests. */
function print(action: string, title?: string, output?: string): void {
  process.stdout.write(`\n${JSON.stringify({ Action: action, Package: "vscode", Test: title, Output: output })}\n`);
}

export = Events;
