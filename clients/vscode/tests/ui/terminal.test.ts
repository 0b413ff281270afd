import * as assert from "node:assert/strict";
import { existsSync } from "node:fs";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";

interface Recorder {
  longest: number;
  most: number;
  stop: boolean;
}

/**
 * Writes the clipboard, requests its content, and prints the terminal's answer.
 * The browser's clipboard is not involved.
 */
const useClipboard = (seconds: number) =>
  `clear; printf '\\e]52;c;ZXZpbA==\\a\\e]52;c;?\\a'; IFS= read -rs -t ${seconds} -d $'\\a' x; echo "got=\${x##*;}."`;

describe("a terminal in the window", () => {
  const fixture = useFixture();

  it("opens from the palette, runs a command and shows its output", async () => {
    const { window } = fixture();
    await window.newTerminal();
    const text = await window.run("echo hel''lo", /^hello$/m);
    assert.match(text, /ready\$ echo/);
  });

  it("denies what the settings do not grant", async () => {
    const { window, world } = fixture();
    const text = await window.run(`cat ${world.secret}; echo status=$?`, /^status=\d+$/m);
    assert.match(text, /Permission denied/);
    assert.match(text, /^status=1$/m);
    assert.doesNotMatch(text, new RegExp(world.secretText));
  });

  it("has the size of its view, also after a change", async () => {
    const { window } = fixture();
    const before = await window.terminalSize();
    await window.run("clear; echo size=$(stty size)", new RegExp(`^size=${before.rows} ${before.cols}$`, "m"));
    await window.command("View: Toggle Maximized Panel");
    const after = await until("another size", async () => {
      const size = await window.terminalSize();
      return size.rows !== before.rows ? size : undefined;
    });
    await until("the program's other size", async () => {
      const text = await window.run("echo now=$(stty size)=", /^now=\d+ \d+=$/m);
      return text.includes(`now=${after.rows} ${after.cols}=`);
    });
    await window.command("View: Toggle Maximized Panel");
  });

  it("shows characters whole, however the output is split", async () => {
    const { window } = fixture();
    const text = await window.run("clear; for i in $(seq 3000); do printf 'ä漢🙂'; done; echo; echo en''d", /^end$/m);
    assert.doesNotMatch(text, /\uFFFD/);
    assert.equal([...text.matchAll(/🙂/gu)].length, 3000);
  });

  it("reports commands and their exit codes to the editor", async () => {
    const { window } = fixture();
    await window.run("clear; false; echo on''ce", /^once$/m);
    await window.type("ls /does/not/exist");
    await until(
      "a mark of failure",
      async () => (await window.page.locator(".terminal-command-decoration.error").count()) > 0,
    );
    await until(
      "a mark of success",
      async () => (await window.page.locator(".terminal-command-decoration:not(.error)").count()) > 0,
    );
  });

  it("denies programs the clipboard", async () => {
    const { window } = fixture();
    await window.run(useClipboard(3), /^got=\.$/m);
  });

  it("leaves the window usable during 20 MB of output", async () => {
    const { window, world } = fixture();
    const done = path.join(world.project, "flood-done");
    await window.page.evaluate(() => {
      const w = globalThis as unknown as {
        recorder: Recorder;
        requestAnimationFrame(f: (at: number) => void): void;
        document: { querySelector(s: string): unknown };
      };
      w.recorder = { longest: 0, most: 0, stop: false };
      let last = 0;
      const frame = (at: number) => {
        if (last > 0) w.recorder.longest = Math.max(w.recorder.longest, at - last);
        last = at;
        const element = w.document.querySelector(".terminal-wrapper.active") as {
          xterm?: { _core?: { _writeBuffer?: { _pendingData?: number } } };
        } | null;
        w.recorder.most = Math.max(w.recorder.most, element?.xterm?._core?._writeBuffer?._pendingData ?? 0);
        if (!w.recorder.stop) w.requestAnimationFrame(frame);
      };
      w.requestAnimationFrame(frame);
    });
    const began = Date.now();
    await window.type(`clear; head -c 20000000 /dev/zero | tr '\\0' x | fold -w 99; touch ${done}; echo flood-en''d`);
    await until("the flood", async () => (await window.terminal()).includes("xxxxxxxx"));
    // The palette opens and closes during the flood.
    await window.page.keyboard.press("F1");
    await window.page.locator(".quick-input-widget:visible input.input").waitFor();
    const during = !existsSync(done);
    await window.page.keyboard.press("Escape");
    await until("the end of the flood", async () => (await window.terminal()).includes("flood-end"), 150);
    const recorder = await window.page.evaluate(() => {
      const { recorder } = globalThis as unknown as { recorder: Recorder };
      recorder.stop = true;
      return recorder;
    });
    process.stdout.write(
      `      20 MB in ${((Date.now() - began) / 1000).toFixed(1)} s, longest frame ${Math.round(recorder.longest)} ms, ` +
        `at most ${Math.round(recorder.most / 1024)} KiB waited for the emulator\n`,
    );
    assert.ok(during, "the flood was over before the palette opened, so nothing was tested");
    assert.ok(recorder.most > 0, "the emulator's queue was not seen");
    assert.ok(recorder.most < 2 << 20, `${recorder.most} bytes waited for the emulator`);
  });

  it("has the name of the program that runs in it", async () => {
    const { window } = fixture();
    const named = (name: RegExp) =>
      window.page.locator(".single-terminal-tab:visible, .terminal-tabs-entry:visible", { hasText: name }).first();
    await window.run("clear; echo re''ady", /^ready$/m);
    await named(/^\s*bash\s*$/).waitFor();
    await window.type("sleep 1000");
    await named(/^\s*sleep\s*$/).waitFor();
    await window.page.keyboard.press("Control+C");
    await named(/^\s*bash\s*$/).waitFor();
  });

  it("ends with its shell", async () => {
    const { window } = fixture();
    await window.newTerminal();
    const before = await window.tabs();
    await window.type("exit");
    await until("one terminal less", async () => (await window.tabs()) < before);
  });

  it("is a terminal profile", async () => {
    const { window } = fixture();
    await window.newTerminal(); // VS Code shows no panel for a profile's terminal
    await until("the profile is listed", async () => {
      await window.command("Terminal: Create New Terminal (With Profile)");
      await window.page.locator('.quick-input-widget:visible input[placeholder*="terminal profile"]').waitFor();
      await window.page.keyboard.type("Sandboxed");
      const row = window.page.locator(".quick-input-list .monaco-list-row", { hasText: "Sandboxed Terminal" }).first();
      // Sometimes the list is built before the extension's profiles are known.
      if (
        await row.waitFor({ timeout: 2000 }).then(
          () => true,
          () => false,
        )
      ) {
        await row.click();
        return true;
      }
      await window.page.keyboard.press("Escape");
      return false;
    });
    await window.page.locator(".terminal-tabs-entry", { hasText: /^\s*bash\s*$/ }).nth(1).waitFor();
  });
});

describe("a terminal that VS Code's own settings are for", () => {
  const settings = {
    "terminal.integrated.cwd": "${workspaceFolder}/below",
    "terminal.integrated.env.linux": { LC_PAPER: "from-the-settings", COLORTERM: null },
  };
  const fixture = useFixture({ settings, prepare: (world) => world.directory("home/project/below") });

  it("starts where they say, with the variables that they set", async () => {
    const { window, world } = fixture();
    await window.newTerminal();
    await window.run("clear; pwd; echo do''ne", new RegExp(`^${path.join(world.project, "below")}\ndone$`, "m"));
    // The sandbox's filter passes the names of locales.
    await window.run("clear; echo [$LC_PAPER][$COLORTERM]", /^\[from-the-settings\]\[\]$/m);
  });
});

describe("a terminal that may use the clipboard", () => {
  const fixture = useFixture({ machine: { "sandboxSidecar.clipboard": true } });

  it("writes and reads the clipboard", async () => {
    const { window } = fixture();
    await window.newTerminal();
    await window.run(useClipboard(60), /^got=ZXZpbA==\.$/m);
  });
});
