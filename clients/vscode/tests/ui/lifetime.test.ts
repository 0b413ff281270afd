import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as path from "node:path";

import { expectedSummary } from "../harness/machine";
import { alive, matching } from "../harness/processes";
import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";

describe("a process in a terminal", () => {
  const fixture = useFixture();

  /**
   * Starts a process in a new terminal that ignores hang-ups, and returns its
   * id.
   */
  async function daemon(name: string): Promise<number> {
    const { window, world } = fixture();
    const file = path.join(world.project, name);
    await window.newTerminal();
    await window.type(`setsid sh -c 'trap "" HUP TERM; echo $$ >${file}; while :; do sleep 1; done' &`);
    const pid = Number(await until("a daemon", () => readFileSync(file, "utf8").trim()));
    assert.ok(alive(pid), `the daemon ${pid} does not run: ${await window.terminal()}`);
    return pid;
  }

  it("ends when the terminal is closed", async () => {
    const { window } = fixture();
    const pid = await daemon("closed");
    await window.command("Terminal: Kill the Active Terminal Instance");
    await until("the daemon is dead", () => !alive(pid));
  });

  it("ends when the sidecar is killed, which is reported", async () => {
    const { window, world } = fixture();
    const pid = await daemon("sidecar");
    const sidecar = matching("serve --log-level").find(({ command }) => command.startsWith(world.root));
    assert.ok(sidecar);
    process.kill(sidecar.pid, "SIGKILL");
    await window.notification("ended unexpectedly");
    await until("the daemon is dead", () => !alive(pid));
    await until("the terminal says so", async () =>
      (await window.terminal()).includes("The sandbox sidecar ended, and this session with it."),
    );
    await window.waitForStatus(expectedSummary() === "full" ? "Sandbox: on" : "Sandbox: partly");
    await window.focusTerminal();
    const before = await window.tabs();
    await window.page.keyboard.press("Enter");
    await until("the terminal closes by a key", async () => (await window.tabs()) < before);
    await window.command("Notifications: Clear All Notifications");
  });

  it("ends when the window is reloaded, and so does the sidecar", async () => {
    const { window, world } = fixture();
    const pid = await daemon("reload");
    const sidecars = () => matching("serve --log-level").filter(({ command }) => command.startsWith(world.root));
    const before = sidecars().map((process) => process.pid);
    await window.page.reload();
    await window.loaded();
    await until("the daemon is dead", () => !alive(pid));
    await until("the old sidecar is gone", () => before.every((old) => !alive(old)));
    await window.newTerminal();
    await window.run("echo an''ew", /^anew$/m);
    assert.equal(sidecars().length, 1);
  });

  it("ends when the extension host is killed", async () => {
    const { server } = fixture();
    const pid = await daemon("host");
    const host = await until("the extension host", () => server.extensionHost());
    process.kill(host, "SIGKILL");
    await until("the daemon is dead", () => !alive(pid));
  });
});
