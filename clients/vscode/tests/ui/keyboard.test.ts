import * as assert from "node:assert/strict";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";
import { refusedChange } from "../harness/machine";
import { until } from "../harness/until";

describe("the keyboard alone", () => {
  const fixture = useFixture({
    prepare: (world) => world.write(path.join(world.home, "notes", "list.txt"), "milk\n"),
  });

  /** Opens the menu of the view's first row. */
  async function menu() {
    const { window } = fixture();
    const { page } = window;
    const row = (await window.refused(/notes/)).first();
    await row.waitFor();
    // A key that comes while the focus moves is lost.
    await until("the first row has the focus", async () => {
      await page.keyboard.press("Home");
      return /\bfocused\b/.test((await row.getAttribute("class")) ?? "");
    });
    const items = page.locator(".context-view .monaco-menu .action-item:not(.disabled)");
    await until("its menu", async () => {
      await page.keyboard.press("Shift+F10");
      return items
        .first()
        .waitFor({ timeout: 2000 })
        .then(() => true)
        .catch(() => false);
    });
    return { page, row, items };
  }

  /** Moves to an entry of the open menu, and chooses it. */
  async function choose(label: string) {
    const { page, items } = await menu();
    await until(`${label} has the focus`, async () => {
      if ((await items.count()) === 0) await menu(); // it was closed
      const focused = items.filter({ has: page.locator(":focus") }).or(page.locator(".monaco-menu .action-item.focused"));
      if ((await focused.allInnerTexts()).some((text) => text.includes(label))) return true;
      await page.keyboard.press("ArrowDown");
      return false;
    });
    await page.keyboard.press("Enter");
  }

  it("reaches everything in the view of what was refused, which screen readers can read", async () => {
    const { window, world } = fixture();
    const { page } = window;
    const file = path.join(world.home, "notes", "list.txt");
    await window.newTerminal();
    await window.run(`echo bread >>${file}`, refusedChange());
    const { row } = await menu();
    assert.match((await row.getAttribute("aria-label")) ?? "", /additional_read_write_paths.*1 refused/);
    await page.keyboard.press("Escape");
    await choose("Copy Setting");
    await until("the setting in the clipboard", async () => /additional_read_write_paths/.test(await window.clipboard()));
    await choose("Allow…");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "For all my projects" }).first().waitFor();
    await page.keyboard.press("Escape");
  });

  it("allows from the palette, which asks what", async () => {
    const { window } = fixture();
    const { page } = window;
    await window.command("Sandbox: Allow…");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "additional_read_write_paths" }).waitFor();
    await page.keyboard.press("Enter");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "For all my projects" }).first().waitFor();
    await page.keyboard.press("Enter");
    await window.notification("It applies to new terminals");
  });
});
