import * as assert from "node:assert/strict";
import * as path from "node:path";

import { Browser } from "./browser";
import { Server, type ServerOptions } from "./server";
import { Workbench } from "./workbench";
import { given, World } from "./world";

/** What a test plays on. */
export interface Stage {
  world: World;
  server: Server;
  browser: Browser;
  window: Workbench;
}

/** How a stage is set. */
export interface StageOptions extends ServerOptions {
  scheme?: "dark" | "light";
  /** Called before anything is started. */
  prepare?: (world: World) => void;
}

/** Sets a stage: VS Code with the extension installed from its package, a window on the project, all of it real. */
export async function setStage(options: StageOptions = {}): Promise<Stage> {
  const world = new World();
  const partial: { server?: Server; browser?: Browser } = {};
  try {
    options.prepare?.(world);
    const server = (partial.server = await Server.start(world, { vsix: given("VSIX"), ...options }));
    const browser = (partial.browser = await Browser.open(world, options.scheme));
    const window = new Workbench(browser.page, server);
    await window.open(world.project);
    return { world, server, browser, window };
  } catch (error) {
    await partial.browser?.page
      .screenshot({ path: path.join(process.env["SHOTS"] ?? world.root, "stage.png") })
      .catch(() => undefined);
    await partial.browser?.close();
    await partial.server?.stop();
    world.dispose();
    throw error;
  }
}

/** Clears a stage; nothing of it is left. */
export async function clearStage(stage: Stage | undefined): Promise<void> {
  if (stage === undefined) return;
  const foreign = [...stage.browser.foreign];
  await stage.browser.close();
  await stage.server.stop();
  stage.world.dispose();
  assert.deepEqual(foreign, [], "a page asked for something outside of this machine");
}

/** Registers hooks that set a stage for the tests around, and answers how to get at it. A failed test leaves a picture where SHOTS says. */
export function onStage(options: StageOptions = {}): () => Stage {
  let stage: Stage | undefined;
  before(async function () {
    this.timeout(240_000);
    stage = await setStage(options);
  });
  afterEach(async function () {
    const dir = process.env["SHOTS"];
    if (dir === undefined || this.currentTest?.state !== "failed") return;
    const name = this.currentTest.fullTitle().replace(/\W+/g, "-").slice(0, 80);
    await stage?.browser.page.screenshot({ path: path.join(dir, `${name}.png`) }).catch(() => undefined);
  });
  after(async function () {
    this.timeout(60_000);
    await clearStage(stage);
  });
  return () => {
    assert.ok(stage);
    return stage;
  };
}
