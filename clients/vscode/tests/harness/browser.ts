import { mkdtempSync, rmSync } from "node:fs";
import * as path from "node:path";

import { chromium, type BrowserContext, type Page } from "playwright-core";

import { dark } from "./looks";
import { limit } from "./until";
import type { World } from "./world";

/** A browser for one test. */
export class Browser {
  /**
   * Addresses outside of this machine that a page requested. There must be
   * none.
   */
  readonly foreign = new Set<string>();

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    private readonly profile: string,
  ) {
    page.on("request", (request) => {
      const { protocol, hostname, origin } = new URL(request.url());
      if (/^(https?|wss?):$/.test(protocol) && hostname !== "127.0.0.1") this.foreign.add(origin);
    });
  }

  static async open(world: World, look = dark): Promise<Browser> {
    const profile = mkdtempSync(path.join(world.root, "chromium-"));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      headless: true,
      viewport: look.size,
      colorScheme: look.scheme,
      reducedMotion: "reduce",
      permissions: ["clipboard-read", "clipboard-write"],
      // Chromium's sandbox does not start as root. The browser visits only the
      // tests' server.
      chromiumSandbox: process.getuid?.() !== 0,
      args: [
        ...["--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run"],
        ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
      ],
      env: { ...process.env, HOME: profile },
    });
    const page = context.pages()[0] ?? (await context.newPage());
    const prolong = setInterval(() => page.setDefaultTimeout(limit(60)), 1000);
    page.on("close", () => clearInterval(prolong));
    page.setDefaultTimeout(limit(60));
    return new Browser(context, page, profile);
  }

  async close(): Promise<void> {
    await this.context.close();
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
  }
}
