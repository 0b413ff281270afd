import type { Locator, Page } from "playwright-core";

import type { Server } from "./server";
import { until } from "./until";

interface TerminalLine {
  /** It goes on with the line above, which was too long. */
  isWrapped: boolean;
  translateToString(trim: boolean): string;
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

/** VS Code's window, as its user sees and types. */
export class Workbench {
  constructor(
    readonly page: Page,
    private readonly server: Server,
  ) {}

  /** Opens a folder or, with a name that ends so, a .code-workspace. */
  async open(folder: string): Promise<void> {
    const what = folder.endsWith(".code-workspace") ? "workspace" : "folder";
    await this.page.goto(`http://127.0.0.1:${this.server.port}/?${what}=${folder}`, { waitUntil: "domcontentloaded" });
    await this.loaded();
  }

  /** Waits until the extension has shown itself. */
  async loaded(): Promise<void> {
    await this.page.locator(".monaco-workbench").waitFor();
    await this.status.waitFor({ timeout: 120_000 });
  }

  get status(): Locator {
    return this.page.locator('[id="sandbox-sidecar.sandbox-sidecar.sandboxSidecar.status"]');
  }

  /** Waits until the status bar says something. */
  async waitForStatus(text: string | RegExp): Promise<void> {
    await this.status.filter({ hasText: text }).waitFor();
  }

  /** Runs a command by the palette. */
  async command(title: string): Promise<void> {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget:visible input.input");
    await input.waitFor();
    await input.fill(`>${title}`);
    // The category is not shown in every part of the list.
    const name = title.replace(/^\w+: /, "");
    await this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: name }).first().waitFor();
    await this.page.keyboard.press("Enter");
  }

  /** Chooses an entry of the list that is open. */
  async choose(label: string): Promise<void> {
    await this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: label }).first().click();
  }

  /** Waits for a notification, whatever others there are. */
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
    // Of many only three are shown, and none for long. They stay in the list.
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
        await notification.getByText(button).click({ timeout: 5000 }); // it may go from the window into the list meanwhile
        return true;
      },
      120,
    );
  }

  /** Answers those in the list of notifications, where all stay that nobody has answered. */
  async listed(text: string | RegExp): Promise<Locator> {
    await this.command("Notifications: Show Notifications");
    return this.page.locator(".notifications-center .notification-list-item", { hasText: text });
  }

  /** Opens a sandboxed terminal, and waits for its prompt. */
  async newTerminal(prompt = /ready\$ $/): Promise<void> {
    // The one in front before may have a prompt, too, and stays there for a
    // moment.
    await this.page.locator(".terminal-wrapper").evaluateAll((all) => {
      for (const { dataset } of all as unknown as { dataset: Record<string, string> }[]) dataset["known"] = "";
    });
    await this.command("Sandbox: New Terminal");
    await this.page.locator(".terminal-wrapper.active:not([data-known])").waitFor();
    await until("a prompt", async () => prompt.test(`${(await this.terminal()).trimEnd()} `));
    await this.focusTerminal();
  }

  /** How many terminals there are. */
  async tabs(): Promise<number> {
    return this.page.locator(".terminal-wrapper").count();
  }

  /** Answers all that stands in the terminal in front, whether it is scrolled away or not, with lines as long as they were printed. */
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

  async focusTerminal(): Promise<void> {
    await this.page.locator(".terminal-wrapper.active textarea.xterm-helper-textarea").focus();
  }

  /** Types a line into the terminal in front. */
  async type(line: string): Promise<void> {
    await this.focusTerminal();
    await this.page.keyboard.type(line);
    await this.page.keyboard.press("Enter");
  }

  /** Types a line, and waits for something in the terminal. */
  async run(line: string, expect: RegExp): Promise<string> {
    await this.type(line);
    return until(`${String(expect)} after ${line}`, async () => {
      const text = await this.terminal();
      if (!expect.test(text)) throw new Error(text.slice(-2000));
      return text;
    });
  }

  /** Answers what is in the clipboard. */
  async clipboard(): Promise<string> {
    return this.page.evaluate(() => (globalThis as unknown as WithClipboard).navigator.clipboard.readText());
  }

  /** Answers the whole text of the editor in front. */
  async editorText(): Promise<string> {
    const lines = await this.page.locator(".editor-instance .view-line").allInnerTexts();
    return lines.map((line) => line.replaceAll("\u00a0", " ")).join("\n");
  }
}
