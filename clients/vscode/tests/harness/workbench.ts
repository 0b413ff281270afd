import type { Locator, Page } from "playwright-core";

import type { Server } from "./server";
import { limit, until } from "./until";

interface TerminalLine {
  /** The line continues the one above. */
  isWrapped: boolean;
  translateToString(trim: boolean): string;
}

interface Drawn {
  textContent: string;
  closest(selector: string): Drawn | null;
  getBoundingClientRect(): { right: number };
}

interface TerminalElement {
  xterm: {
    cols: number;
    rows: number;
    buffer: { active: { length: number; getLine(i: number): TerminalLine | undefined } };
  };
}

interface WithClipboard {
  navigator: { clipboard: { readText(): Promise<string> } };
}

/** VS Code's window, as its user sees and uses it. */
export class Workbench {
  constructor(
    readonly page: Page,
    private readonly server: Server,
  ) {}

  /** Opens a folder or a .code-workspace file. */
  async open(folder: string): Promise<void> {
    const what = folder.endsWith(".code-workspace") ? "workspace" : "folder";
    await this.page.goto(`http://127.0.0.1:${this.server.port}/?${what}=${folder}`, { waitUntil: "domcontentloaded" });
    await this.loaded();
  }

  /** Waits until the extension is active. */
  async loaded(): Promise<void> {
    await this.page.locator(".monaco-workbench").waitFor();
    await this.status.waitFor({ timeout: limit(120) });
  }

  get status(): Locator {
    return this.page.locator('[id="sandbox-sidecar.sandbox-sidecar.sandboxSidecar.status"]');
  }

  /** Waits until the status bar shows a text. */
  async waitForStatus(text: string | RegExp): Promise<void> {
    await this.status.filter({ hasText: text }).waitFor();
  }

  /** Runs a command from the palette. */
  async command(title: string): Promise<void> {
    // The category is missing in some parts of the list.
    const name = title.replace(/^\w+: /, "");
    const row = this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: name }).first();
    const widget = this.page.locator(".quick-input-widget:visible");
    // The palette closes if something else takes the focus. One that shows nothing is opened anew.
    await until(`${title} in the palette`, async () => {
      await this.page.keyboard.press("F1");
      await widget.locator("input.input").fill(`>${title}`, { timeout: 10_000 });
      await row.waitFor({ timeout: 10_000 }).catch(async () => {
        const shown = (await widget.allInnerTexts()).join(" ");
        await this.page.keyboard.press("Escape");
        throw new Error(`the palette shows ${JSON.stringify(shown.slice(0, 500))}`);
      });
      return true;
    });
    await this.page.keyboard.press("Enter");
  }

  /**
   * Types into a box and accepts. The box is known by a part of its text or of its placeholder: the one before it may
   * still be open.
   */
  async enter(box: string, value: string): Promise<void> {
    const input = this.input(box);
    await input.fill(value);
    await input.press("Enter");
  }

  /** The input of a box with this text or placeholder. */
  input(box: string): Locator {
    const widget = this.page.locator(".quick-input-widget:visible");
    return widget
      .filter({ hasText: box })
      .locator("input.input")
      .or(widget.locator(`input.input[placeholder*="${box}"]`));
  }

  /** Selects an entry of the open list. */
  async choose(label: string): Promise<void> {
    await this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: label }).first().click();
  }

  /** Waits for a notification. */
  async notification(text: string | RegExp): Promise<Locator> {
    const notification = this.page
      .locator(".notification-list-item", { hasText: text })
      .filter({ visible: true })
      .first();
    const shown = await notification.waitFor({ timeout: 20_000 }).then(
      () => true,
      () => false,
    );
    if (shown) return notification;
    // Only three are shown at a time, and not for long. The list keeps them.
    const listed = (await this.listed(text)).first();
    await listed.waitFor();
    return listed;
  }

  /** Waits for a notification, and clicks one of its buttons. */
  async answer(text: string | RegExp, button: string): Promise<void> {
    await until(
      `${button} of the notification ${String(text)}`,
      async () => {
        const notification = await this.notification(text);
        // It may move from the window into the list meanwhile.
        await notification.getByText(button).click({ timeout: 5000 });
        return true;
      },
      120,
    );
  }

  /**
   * Returns matching entries from the list of notifications. It keeps those
   * without an answer.
   */
  async listed(text: string | RegExp): Promise<Locator> {
    await this.command("Notifications: Show Notifications");
    return this.page.locator(".notifications-center .notification-list-item", { hasText: text });
  }

  /** Opens the view of what was refused, and returns its matching rows. */
  async refused(text: string | RegExp): Promise<Locator> {
    await this.command("Sandbox: Show Denials");
    await this.page.locator(".tree-explorer-viewlet-tree-view .monaco-list:focus-within").waitFor();
    return this.page.locator(".pane-body .monaco-list-row", { hasText: text });
  }

  /** Opens a sandboxed terminal, and waits for its prompt. */
  async newTerminal(prompt = /ready\$ $/): Promise<void> {
    // The terminal that was active before may also have a prompt, and stays
    // visible for a moment.
    await this.page.locator(".terminal-wrapper").evaluateAll((all) => {
      for (const { dataset } of all as unknown as { dataset: Record<string, string> }[]) dataset["known"] = "";
    });
    await this.command("Sandbox: New Terminal");
    await this.page.locator(".terminal-wrapper.active:not([data-known])").waitFor();
    await until("a prompt", async () => prompt.test(`${(await this.terminal()).trimEnd()} `));
    await this.focusTerminal();
  }

  /** Returns the number of terminals. */
  async tabs(): Promise<number> {
    return this.page.locator(".terminal-wrapper").count();
  }

  /**
   * Returns the text of the active terminal, with its scrollback. Wrapped lines
   * are joined.
   */
  async terminal(): Promise<string> {
    return this.page.locator(".terminal-wrapper.active").evaluate((element) => {
      const { active } = (element as unknown as TerminalElement).xterm.buffer;
      const lines: string[] = [];
      for (let i = 0; i < active.length; i++) {
        const goesOn = active.getLine(i + 1)?.isWrapped === true;
        const text = active.getLine(i)?.translateToString(!goesOn) ?? "";
        if (active.getLine(i)?.isWrapped === true && lines.length > 0) lines.push(`${lines.pop() ?? ""}${text}`);
        else lines.push(text);
      }
      return lines.join("\n").trimEnd();
    });
  }

  async terminalSize(): Promise<{ cols: number; rows: number }> {
    return this.page.locator(".terminal-wrapper.active").evaluate((element) => {
      const { cols, rows } = (element as unknown as TerminalElement).xterm;
      return { cols, rows };
    });
  }

  /** Focuses the terminal in front. Of a split, the one that has the focus keeps it. */
  async focusTerminal(): Promise<void> {
    const inputs = this.page.locator(".terminal-wrapper.active textarea.xterm-helper-textarea");
    await inputs.first().waitFor({ state: "attached" });
    if ((await inputs.and(this.page.locator(":focus")).count()) === 0) await inputs.first().focus();
  }

  /** Types a line into the active terminal. */
  async type(line: string): Promise<void> {
    await this.focusTerminal();
    await this.page.keyboard.type(line);
    await this.page.keyboard.press("Enter");
  }

  /** Types a line, and waits until the terminal matches. */
  async run(line: string, expect: RegExp): Promise<string> {
    await this.type(line);
    return until(`${String(expect)} after ${line}`, async () => {
      const text = await this.terminal();
      if (!expect.test(text)) throw new Error(text.slice(-2000));
      return text;
    });
  }

  /** Returns the clipboard's text. */
  async clipboard(): Promise<string> {
    return this.page.evaluate(() => (globalThis as unknown as WithClipboard).navigator.clipboard.readText());
  }

  /** Waits until every line of the active editor is as long as its view at most. */
  async wholeLines(): Promise<void> {
    const lines = this.page.locator(".editor-instance .editor-scrollable .view-line > span");
    await until("lines that are not cut off", async () => {
      const cut = await lines.evaluateAll((elements) => {
        const right = (of: Drawn | null) => of?.getBoundingClientRect().right ?? 0;
        return (elements as unknown as Drawn[])
          .filter((line) => right(line) > right(line.closest(".editor-scrollable")))
          .map((line) => line.textContent);
      });
      if (cut.length > 0) throw new Error(`these are cut off: ${cut.join("\n")}`);
      return true;
    });
  }

  /**
   * Returns the whole text of the active editor, also its hidden part. It must
   * show some words.
   */
  async wholeEditor(words: string): Promise<string> {
    await until("the text", async () => (await this.editorText()).includes(words));
    return until("the text in the clipboard", async () => {
      await this.page.keyboard.press("Control+A");
      await this.page.keyboard.press("Control+C");
      const text = await this.clipboard();
      return text.includes(words) ? text : "";
    });
  }

  /** Returns the visible text of the active editor. */
  async editorText(): Promise<string> {
    const lines = await this.page.locator(".editor-instance .view-line").allInnerTexts();
    return lines.map((line) => line.replaceAll("\u00a0", " ")).join("\n");
  }
}
