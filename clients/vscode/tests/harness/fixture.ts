import * as assert from "node:assert/strict";
import * as path from "node:path";

import { Browser } from "./browser";
import type { Look } from "./looks";
import { Server, type ServerOptions } from "./server";
import { Workbench } from "./workbench";
import { requireEnv, World } from "./world";

/** What a test uses: a window of VS Code and its surroundings. */
export interface Fixture {
  world: World;
  server: Server;
  browser: Browser;
  window: Workbench;
}

/** How to set up a fixture. */
export interface FixtureOptions extends ServerOptions {
  look?: Look;
  /** Called before anything is started. */
  prepare?: (world: World) => void;
}

/**
 * Starts VS Code with the extension installed from its package, and opens a
 * window on the project.
 */
export async function setUp(options: FixtureOptions = {}): Promise<Fixture> {
  const world = new World();
  const partial: { server?: Server; browser?: Browser } = {};
  try {
    options.prepare?.(world);
    const theme = options.look === undefined ? {} : { "workbench.colorTheme": options.look.theme };
    const settings = { ...theme, ...options.settings };
    const server = (partial.server = await Server.start(world, { vsix: requireEnv("VSIX"), ...options, settings }));
    const browser = (partial.browser = await Browser.open(world, options.look));
    const window = new Workbench(browser.page, server);
    await window.open(world.project);
    return { world, server, browser, window };
  } catch (error) {
    await partial.browser?.page
      .screenshot({ path: path.join(process.env["SHOTS"] ?? world.root, "fixture.png") })
      .catch(() => undefined);
    await partial.browser?.close();
    await partial.server?.stop();
    world.dispose();
    throw error;
  }
}

/** Ends everything and removes the files. */
export async function tearDown(fixture: Fixture | undefined): Promise<void> {
  if (fixture === undefined) return;
  const foreign = [...fixture.browser.foreign];
  await fixture.browser.close();
  await fixture.server.stop();
  fixture.world.dispose();
  assert.deepEqual(foreign, [], "a page asked for something outside of this machine");
}

/**
 * Registers hooks that set up a fixture for the surrounding tests, and returns
 * a function to get it. A failed test leaves a screenshot in SHOTS.
 */
export function useFixture(options: FixtureOptions = {}): () => Fixture {
  let fixture: Fixture | undefined;
  before(async () => {
    fixture = await setUp(options);
  });
  afterEach(async function () {
    const dir = process.env["SHOTS"];
    if (dir === undefined || this.currentTest?.state !== "failed") return;
    const name = this.currentTest.fullTitle().replace(/\W+/g, "-").slice(0, 80);
    await fixture?.browser.page.screenshot({ path: path.join(dir, `${name}.png`) }).catch(() => undefined);
  });
  after(async () => {
    await tearDown(fixture);
  });
  return () => {
    assert.ok(fixture);
    return fixture;
  };
}
