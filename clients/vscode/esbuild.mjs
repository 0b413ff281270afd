// Bundles the extension into dist, the only code in a package. With the argument
// "tests", it also bundles the tests into dist-test.
import { build } from "esbuild";
import { copyFile, mkdir, readdir } from "node:fs/promises";

const release = process.argv.includes("release");
// The CommonJS form of jsonc-parser cannot be bundled.
const common = {
  bundle: true,
  platform: "node",
  mainFields: ["module", "main"],
  format: "cjs",
  target: "node20",
  logLevel: "warning",
};
await build({
  ...common,
  entryPoints: ["src/extension.ts"],
  outdir: "dist",
  external: ["vscode"],
  minify: release,
  sourcemap: !release,
});
await mkdir("dist", { recursive: true });
await copyFile("../../docs/settings.schema.json", "dist/settings.schema.json");

if (process.argv.includes("tests")) {
  const tests = [];
  for (const dir of ["unit", "ui"]) {
    for (const name of await readdir(`tests/${dir}`)) if (name.endsWith(".test.ts")) tests.push(`tests/${dir}/${name}`);
  }
  const entryPoints = [...tests, "tests/host/index.ts", "tests/host/suite.ts", "tests/harness/events.ts"];
  await build({
    ...common,
    entryPoints,
    outdir: "dist-test",
    outbase: "tests",
    external: ["vscode", "mocha", "playwright-core", "typescript"],
    sourcemap: "inline",
  });
}
