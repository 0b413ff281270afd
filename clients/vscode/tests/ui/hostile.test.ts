import * as assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import * as path from "node:path";

import type { Locator } from "playwright-core";

import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";
import type { World } from "../harness/world";

/**
 * File names that a session or the author of a repository could choose. Text
 * after a line break would form its own line.
 */
const hostile: Record<string, string> = {
  link: "[Allow it](command:workbench.action.quit)",
  "link's end": "x](command:workbench.action.quit)",
  line: "a\nFORGED: it is allowed",
  escape: "b\u001b[31mc\rFORGED",
  bidi: "d\u202efdp.exe\u2066\u200b\u2028FORGED",
  icon: "$(error)$(trash)",
  markdown: "<b>bold</b> `x` &#x202e; ![x](command:y)",
  long: `${"n".repeat(230)}.txt`,
};
const names = Object.values(hostile);

/**
 * Checks that a widget has no link but its buttons, no icon from the names, and
 * no character that moves or hides others.
 */
async function harmless(shown: Locator, what: string, links = 0): Promise<string> {
  const link = shown.locator("a[href], a[data-href]");
  if (links > 0) {
    // VS Code may be drawing the text just now.
    await link.first().waitFor();
  }
  assert.equal(
    await link.count(),
    links,
    `${what} holds a link: ${await shown.innerHTML()}`,
  );
  assert.equal(
    await shown.locator(".codicon-trash, b, code").count(),
    0,
    `${what} holds what a name wants: ${await shown.innerHTML()}`,
  );
  const text = await shown.innerText();
  assert.doesNotMatch(
    text,
    /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/,
    `${what}: ${JSON.stringify(text)}`,
  );
  assert.doesNotMatch(text, /^FORGED/m, what);
  return text;
}

const picture = async (locator: Locator, name: string) => {
  const dir = process.env["SHOTS"];
  if (dir !== undefined) await locator.page().screenshot({ path: path.join(dir, `hostile-${name}.png`) });
};

/** Quotes a name for bash, byte by byte. */
const quoted = (name: string) =>
  `$'${[...Buffer.from(name)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}'`;

const prepare = (world: World) => {
  mkdirSync(path.join(world.home, "notes"), { recursive: true });
  for (const name of names) world.write(path.join(world.home, "notes", name), "x\n");
};

/** Writes lines to a script, because the terminal could change typed text. */
function script(world: World, lines: string[]): string {
  const file = path.join(world.project, "play.sh");
  world.write(file, `${lines.join("\n")}\n`);
  return `. ${file}`;
}

describe("hostile names", () => {
  const fixture = useFixture({ prepare });

  it("of files are escaped in notifications, in the list of denials and in its offers", async () => {
    const { window, world } = fixture();
    await window.newTerminal();
    const file = (name: string) => path.join(world.home, "notes", name);
    for (const [what, name] of Object.entries(hostile)) {
      await window.command("Notifications: Clear All Notifications");
      await window.run(`clear; ${script(world, [`cat ${quoted(file(name))} 2>/dev/null; echo don''e`])}`, /^done$/m);
      const notification = await window.notification(
        /refused to let "cat" read ".*notes|refused to let "cat" read ".*…/,
      );
      const text = await harmless(notification, `the notification of ${what}`);
      assert.equal(text.split("\n").filter((line) => line.includes("The sandbox refused")).length, 1, text);
      await picture(notification, `notification-${what.replace(/\W/g, "-")}`);
    }
    await window.command("Notifications: Clear All Notifications");
    const row = (await window.refused(/"\s*read/)).first();
    await row.waitFor();
    const view = window.page.locator(".pane-body", { hasText: "cat: read" }).first();
    await harmless(view.locator(".monaco-list-rows"), "the list");
    await picture(view, "list");
    await row.hover();
    await row.getByRole("button", { name: "Allow…" }).click();
    const list = window.page.locator(".quick-input-widget");
    await list.getByText("For all my projects").first().waitFor();
    await harmless(list, "what offers to allow it");
    await picture(list, "allow");
    await window.page.keyboard.press("Escape");
    // If a click had opened the link of a notification, the window would be
    // gone.
    await window.waitForStatus(/Sandbox/);
  });

  it("of programs are escaped", async () => {
    const { window, world } = fixture();
    await window.command("Notifications: Clear All Notifications");
    const program = path.join(world.project, hostile["link's end"] ?? "");
    const read = `${quoted(program)} ${quoted(world.secret)} 2>/dev/null`;
    await window.run(`clear; ${script(world, [`cp /bin/cat ${quoted(program)}; ${read}; echo don''e`])}`, /^done$/m);
    const notification = await window.notification(/refused to let "x\]\\x28command.* read/);
    const text = await harmless(notification, "the notification of a program");
    assert.match(text, /Why\?/);
    await picture(notification, "program");
  });
});

describe("hostile names in questions", () => {
  const fixture = useFixture({
    prepare: (world) => {
      prepare(world);
      world.settings({ enabled: true, on_denied: "ask" });
    },
  });

  it("are escaped, and the first choice denies", async () => {
    const { window, world } = fixture();
    await window.newTerminal();
    for (const what of ["link", "line", "long"]) {
      const file = path.join(world.home, "notes", hostile[what] ?? "");
      await window.type(`clear; ${script(world, [`cat ${quoted(file)} 2>/dev/null; echo status=$?`])}`);
      const question = await window.notification(/"cat" wants to read "/);
      const text = await harmless(question, `the question about ${what}`, 1);
      assert.match(text, /wants to read "/);
      await picture(question, `question-${what}`);
      await question.getByRole("link", { name: "Answer…" }).click();
      const list = window.page.locator(".quick-input-widget");
      await list.getByText("Allow for how long?").or(list.locator("input[placeholder*='how long']")).first().waitFor();
      await harmless(list, `how long, of ${what}`);
      assert.equal(
        await list
          .locator(".monaco-list-row")
          .first()
          .innerText()
          .then((row) => row.trim()),
        "Don't allow",
      );
      await picture(list, `question-how-long-${what}`);
      // Enter without a selection denies.
      await window.page.keyboard.press("Enter");
      await until("the denial", async () => /^status=1$/m.test(await window.terminal()));
      // VS Code shows a progress for some time after its end, and the link of
      // an answered question does nothing.
      await question.waitFor({ state: "hidden" });
    }
  });
});

describe("a project with hostile settings", () => {
  const values = names.map((name) => `/nowhere/${name}`);
  const fixture = useFixture({
    prepare: (world) => {
      const block = { additional_read_only_paths: values, allowed_env_vars: ["X](command:workbench.action.quit)*"] };
      for (const value of names) mkdirSync(path.join("/", world.root, "far", value), { recursive: true });
      block.additional_read_only_paths = [...values, ...names.map((name) => path.join(world.root, "far", name))];
      // VS Code itself asks about files with this line break.
      const json = JSON.stringify({ terminal: { sandbox: block } }, undefined, 2).replaceAll("\u2028", "\\u2028");
      world.write(path.join(world.project, ".zed", "settings.json"), json);
    },
  });

  it("has one line for each request in the trust question, and Enter does not trust", async () => {
    const { window } = fixture();
    await window.answer("asks for more than your sandbox settings allow", "Show…");
    const dialog = window.page.locator(".monaco-dialog-box");
    await dialog.waitFor();
    const detail = dialog.locator(".dialog-message-detail");
    const text = await harmless(detail, "the trust question");
    const lines = text.split("\n").filter((line) => line !== "");
    const rest = /^… and (\d+) more: choose Show All\.$/.exec(lines.pop() ?? "");
    assert.ok(rest, text);
    assert.ok(lines.length > 2, text);
    for (const line of lines) assert.match(line, /^• line \d+: \w+ "/);
    const scrolls = await dialog
      .locator(".dialog-message-row, .dialog-message-container, .dialog-message-detail")
      .evaluateAll((all) => {
        const boxes = all as unknown as { scrollHeight: number; clientHeight: number }[];
        return boxes.map((box) => box.scrollHeight - box.clientHeight);
      });
    assert.ok(
      scrolls.length > 0 && scrolls.every((more) => more <= 1),
      `something is out of sight: ${String(scrolls)}`,
    );
    await picture(dialog, "trust");
    const focused = await window.page.evaluate("document.activeElement.textContent");
    assert.equal(focused, "Don't Trust");
    await window.page.keyboard.press("Enter");
    await dialog.waitFor({ state: "detached" });
    await window.command("Sandbox: Trust Project Settings");
    await dialog.waitFor();
    await dialog.getByRole("button", { name: "Show All" }).click();
    const asked = lines.length + Number(rest[1]);
    const all = await window.wholeEditor("• line");
    assert.equal(all.split("\n").filter((line) => line.startsWith("• line")).length, asked, all);
    assert.equal(all.split("\n").filter((line) => line.startsWith("FORGED")).length, 0, all);
    await picture(dialog, "trust-all");
  });

  it("has escaped diagnostics", async () => {
    const { window } = fixture();
    await window.command("Sandbox: Open Project Settings");
    await window.page.locator(".squiggly-warning").first().waitFor();
    await window.command("View: Focus Problems");
    const problems = window.page.locator(".markers-panel");
    await problems.getByText("has no effect unless you trust").first().waitFor();
    await harmless(problems.locator(".monaco-list-rows"), "the problems");
    await picture(problems, "problems");
    await window.page.locator(".squiggly-warning").first().hover({ force: true });
    const hover = window.page.locator(".monaco-hover:visible .hover-row", { hasText: "sandbox-sidecar" }).first();
    await hover.waitFor();
    await picture(hover, "hover");
    await harmless(hover.locator(".marker, .hover-contents").first(), "the hover");
  });

  it("has a policy with one line for each rule", async () => {
    const { window } = fixture();
    await window.command("Sandbox: Show Policy");
    await window.choose("Terminals");
    const all = await window.wholeEditor("A terminal in");
    assert.match(all, /^PROBLEMS IN THE SETTINGS$/m);
    assert.match(all, /FORGED/);
    assert.doesNotMatch(all, /^\s*FORGED/m);
    await picture(window.page.locator(".editor-instance").first(), "policy");
    await window.waitForStatus("Sandbox: ");
    await window.status.hover();
    const hover = window.page.locator(".monaco-hover:visible", { hasText: "All Commands" });
    await hover.waitFor();
    const links = await hover.locator("a").evaluateAll((all) => {
      const elements = all as unknown as { dataset: Record<string, string> }[];
      return elements.map(({ dataset }) => dataset["href"]);
    });
    const ours = ["showPolicy", "openUserSettings", "doctor", "showStatus"];
    assert.deepEqual(
      links,
      ours.map((name) => `command:sandboxSidecar.${name}`),
    );
    await picture(hover, "status");
  });
});
