import * as assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import * as path from "node:path";

import { until } from "./until";
import type { Workbench } from "./workbench";

/** What a state of the window says. */
export interface Said {
  /** The status bar's item. */
  bar: string | RegExp;
  /** What its hover says, in this order. */
  hover: RegExp;
  /** The name of the window's only terminal; undefined if there is none. */
  terminal?: string | RegExp;
  /** The only notification; undefined if there must be none. */
  notice?: string | RegExp;
}

const toast = ".notifications-toasts .notification-list-item";

/** Checks what is on the screen, and takes pictures of it. */
export class Screen {
  private taken = 0;

  /** Pictures go to SHOTS, and have names that start with the story's. */
  constructor(
    private readonly window: Workbench,
    private readonly story: string,
  ) {}

  /** Checks a state and takes its picture, with the hover open. */
  async shows(state: string, { bar, hover, terminal, notice }: Said): Promise<void> {
    const { page, status } = this.window;
    const toasts = page.locator(toast);
    if (notice !== undefined) await toasts.filter({ hasText: notice }).waitFor();
    await status.filter({ hasText: bar }).waitFor();
    const tab = page.locator(".single-terminal-tab");
    if (terminal === undefined) await tab.waitFor({ state: "hidden" });
    else await tab.filter({ hasText: terminal }).waitFor();
    await this.hover(hover);
    // One act has one notification.
    const all = await toasts.allInnerTexts();
    assert.equal(all.length, notice === undefined ? 0 : 1, all.join("\n"));
    await this.take(state);
    await page.mouse.move(page.viewportSize()?.width ?? 0, 200);
    await page.locator(".monaco-hover:visible").waitFor({ state: "detached" });
  }

  /** Opens the status bar's hover, again if it shows an older state. */
  private async hover(text: RegExp): Promise<void> {
    const { page, status } = this.window;
    const shown = page.locator(".monaco-hover:visible");
    await until(`the hover ${String(text)}`, async () => {
      await page.mouse.move(page.viewportSize()?.width ?? 0, 200);
      await shown.waitFor({ state: "detached" });
      await status.hover();
      await shown.first().waitFor({ timeout: 5000 });
      const said = (await shown.first().innerText()).replaceAll(/\s+/g, " ").trim();
      if (!text.test(said)) throw new Error(said);
      return true;
    });
  }

  /** Takes a picture of a state, in which nothing may be cut off. */
  async take(state: string): Promise<void> {
    const { page } = this.window;
    let faults: string[] = [];
    // A notification slides in.
    await until("nothing is cut off", async () => (faults = await this.faults()).length === 0, 5).catch(() => undefined);
    this.taken += 1;
    const directory = process.env["SHOTS"];
    if (directory !== undefined) {
      mkdirSync(directory, { recursive: true });
      const name = `${this.story}-${String(this.taken).padStart(2, "0")}-${state.replaceAll(/\W+/g, "-")}.png`;
      await page.screenshot({ path: path.join(directory, name), animations: "disabled", caret: "hide" });
    }
    assert.deepEqual(faults, [], `${state}: it is cut off, or too long`);
  }

  /** Closes all notifications. */
  async clear(): Promise<void> {
    await this.window.command("Notifications: Clear All Notifications");
    await this.window.page.locator(toast).first().waitFor({ state: "detached" });
  }

  /**
   * Returns what is outside of the window, is cut off, or has more than three
   * lines or a hundred characters.
   */
  private async faults(): Promise<string[]> {
    const { page } = this.window;
    const outside = await page.locator(boxes).evaluateAll(isOutside);
    const cut = await page.locator(texts).evaluateAll(isCut);
    const placeholders = await page.locator(".quick-input-widget:visible input.input").evaluateAll(hasCutPlaceholder);
    const long: string[] = [];
    for (const message of await page.locator(`${toast} .notification-list-item-message`).all()) {
      const text = (await message.innerText()).trim();
      const height = (await message.boundingBox())?.height ?? 0;
      if (text.length > 100) long.push(`${text.length} characters: ${text}`);
      if (height >= 4 * 22) long.push(`${height} pixels high: ${text}`);
    }
    for (const hover of await page.locator(".monaco-hover:visible").all()) {
      const lines = (await hover.innerText()).split("\n").filter((line) => line.trim() !== "");
      if (lines.length > 4) long.push(`a hover of ${lines.length} lines: ${lines.join(" / ")}`);
    }
    return [...outside, ...cut, ...placeholders, ...long];
  }
}

/** What must be in the window as a whole. */
const boxes = [
  ".monaco-hover:visible",
  ".monaco-dialog-box:visible",
  ".quick-input-widget:visible",
  `${toast}:visible`,
  ".context-view .monaco-menu:visible",
  '.statusbar-item[id^="sandbox-sidecar."]:visible',
].join(", ");

/** The texts that must not be cut off. */
const texts = [
  '.statusbar-item[id^="sandbox-sidecar."] .statusbar-item-label',
  ".single-terminal-tab",
  `${toast} .notification-list-item-message`,
  `${toast} .monaco-button`,
  ".quick-input-widget:visible .quick-input-title",
  ".quick-input-list .monaco-list-row .label-name",
  ".quick-input-list .monaco-list-row .label-description",
  ".quick-input-list .monaco-list-row .quick-input-list-label-meta",
  ".monaco-dialog-box .dialog-message-text",
  ".monaco-dialog-box .dialog-message-detail",
  ".monaco-dialog-box .monaco-button",
  ".monaco-hover:visible p",
  ".tree-explorer-viewlet-tree-view .label-name",
  ".tree-explorer-viewlet-tree-view .label-description",
].join(", ");

interface Rect {
  left: number;
  top: number;
  right: number;
  bottom: number;
  width: number;
}

/** An element in the page, where these functions run. */
interface PageElement {
  closest(selector: string): unknown;
  checkVisibility(): boolean;
  innerText: string;
  parentElement: PageElement | null;
  getBoundingClientRect(): Rect;
  placeholder: string;
  value: string;
  clientWidth: number;
}

/** The page's globals. */
interface PageGlobals {
  innerWidth: number;
  innerHeight: number;
  getComputedStyle(element: PageElement): { overflowX: string; overflowY: string; font: string; position: string };
  document: {
    createRange(): { selectNodeContents(element: PageElement): void; getBoundingClientRect(): Rect };
    createElement(name: string): {
      getContext(name: string): { font: string; measureText(text: string): { width: number } };
    };
  };
}

function isOutside(all: unknown): string[] {
  const { innerWidth, innerHeight } = globalThis as unknown as PageGlobals;
  return (all as PageElement[]).flatMap((element) => {
    const box = element.getBoundingClientRect();
    const inside = box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
    return inside ? [] : [`outside of the window: ${element.innerText}`];
  });
}

function isCut(all: unknown): string[] {
  const page = globalThis as unknown as PageGlobals;
  return (all as PageElement[]).flatMap((element) => {
    if (!element.checkVisibility()) return [];
    const range = page.document.createRange();
    range.selectNodeContents(element);
    const text = range.getBoundingClientRect();
    if (text.width === 0) return [];
    for (let above: PageElement | null = element; above !== null; above = above.parentElement) {
      const { overflowX, overflowY } = page.getComputedStyle(above);
      const box = above.getBoundingClientRect();
      const beside = overflowX !== "visible" && (text.right > box.right + 1 || text.left < box.left - 1);
      // A list may be scrolled, and cuts its last row.
      const below = overflowY === "hidden" && element.closest(".monaco-list") === null && text.bottom > box.bottom + 4;
      if (beside || below) return [`cut off: ${element.innerText}`];
    }
    return [];
  });
}

function hasCutPlaceholder(all: unknown): string[] {
  const page = globalThis as unknown as PageGlobals;
  return (all as PageElement[]).flatMap((element) => {
    const ruler = page.document.createElement("canvas").getContext("2d");
    ruler.font = page.getComputedStyle(element).font;
    const { width } = ruler.measureText(element.placeholder);
    return element.value === "" && width > element.clientWidth ? [`cut off: ${element.placeholder}`] : [];
  });
}
