// Bundles the extension into dist, the only code in a package. With the argument
// "tests", it also bundles the tests into dist-test.
import { build } from "esbuild";
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";

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
const { metafile } = await build({
  ...common,
  metafile: true,
  entryPoints: ["src/extension.ts"],
  outdir: "dist",
  external: ["vscode"],
  minify: release,
  sourcemap: !release,
});
await mkdir("dist", { recursive: true });
await copyFile("../../docs/settings.schema.json", "dist/settings.schema.json");

/** The licences of the packages in the bundle, as these ask for. */
async function notices() {
  const inputs = Object.keys(metafile.inputs).map((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]);
  const names = [...new Set(inputs.filter((name) => name !== undefined))].sort();
  const parts = names.map(async (name) => {
    const directory = `node_modules/${name}`;
    const { version } = JSON.parse(await readFile(`${directory}/package.json`, "utf8"));
    const license = (await readdir(directory)).find((file) => /^licen[cs]e/i.test(file));
    if (license === undefined) throw new Error(`${name} has no license file`);
    return `\n${name} ${version}\n\n${await readFile(`${directory}/${license}`, "utf8")}`;
  });
  return `This package contains the following software of others.\n${(await Promise.all(parts)).join("")}`;
}
if (release) await writeFile("ThirdPartyNotices.txt", await notices());

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
