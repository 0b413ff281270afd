import * as assert from "node:assert/strict";
import { existsSync } from "node:fs";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";

describe("what a session changed", () => {
  const fixture = useFixture();

  it("is reported when its terminal ends, if programs outside act on it", async () => {
    const { window } = fixture();
    await window.newTerminal();
    await window.type("echo 'all: # of the session' >Makefile; echo x >notes; exit");
    const notification = await window.notification(
      'Check "Makefile" before programs outside the sandbox use it.',
    );
    const [first] = (await notification.innerText()).split("\n");
    assert.ok(first !== undefined && first.length <= 100, first);
  });

  it("is listed, and a file can be opened", async () => {
    const { window } = fixture();
    await window.answer('Check "Makefile" before', "Show…");
    const rows = window.page.locator(".quick-input-list .monaco-list-row");
    await rows.filter({ hasText: "Makefile" }).first().waitFor();
    const all = await rows.allInnerTexts();
    assert.equal(all.length, 1, all.join("\n"));
    assert.match(all.join(), /created/);
    await window.choose("Makefile");
    await until("the file is open", async () => (await window.editorText()).includes("all: # of the session"));
  });

  it("is counted if there are several, and the user has closed the terminal", async () => {
    const { window, world } = fixture();
    await window.newTerminal();
    await window.run("echo x >build.rs; echo x >CMakeLists.txt; echo do''ne", /^done$/m);
    await window.command("Terminal: Kill the Active Terminal Instance");
    await window.answer("Check 2 changed files before programs outside the sandbox use them.", "Show…");
    await window.page.locator(".quick-input-list .monaco-list-row", { hasText: "build.rs" }).first().waitFor();
    await window.page.keyboard.press("Escape");
    assert.ok(existsSync(path.join(world.project, "build.rs")));
  });

  it("cannot be disguised by its name", async () => {
    const { window } = fixture();
    await window.newTerminal();
    await window.type("echo x >'[a](command:b).gradle'; exit");
    const notification = await window.notification(/Check ".*gradle" before programs/);
    assert.equal(await notification.locator("a[data-href], .notification-list-item-message a").count(), 0);
    assert.match(await notification.innerText(), /\[a\]\\x28command:b\)/);
  });

  it("is not reported of files that nobody acts on", async () => {
    const { window } = fixture();
    await window.command("Notifications: Clear All Notifications");
    await window.newTerminal();
    const before = await window.tabs();
    await window.type("echo x >more-notes; exit");
    await until("the terminal is closed", async () => (await window.tabs()) < before);
    await window.newTerminal();
    await window.type("echo x >again.gradle; exit");
    await window.notification('Check "again.gradle" before');
    assert.equal(await (await window.listed("Check ")).count(), 1);
  });
});
