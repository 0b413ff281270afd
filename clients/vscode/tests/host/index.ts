import * as path from "node:path";

import Mocha from "mocha";

/** VS Code calls this within its extension host. */
export async function run(): Promise<void> {
  const report = process.env["HOST_REPORT"] ?? "";
  const mocha = new Mocha({ timeout: 600_000, color: false, reporter: "json", reporterOptions: { output: report } });
  if (process.env["HOST_ONLY"] !== undefined) mocha.grep(process.env["HOST_ONLY"]);
  mocha.addFile(path.join(__dirname, "suite.js"));
  const failures = await new Promise<number>((resolve) => mocha.run(resolve));
  if (failures > 0) throw new Error(`${failures} tests failed`);
}
