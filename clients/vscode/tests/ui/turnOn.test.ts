import { readFileSync, rmSync } from "node:fs";

import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";

describe("a sandbox that nobody has turned on", () => {
  const fixture = useFixture({ prepare: (world) => rmSync(world.settingsFile) });

  it("is offered with the first terminal, and one click turns it on", async () => {
    const { window, world } = fixture();
    await window.newTerminal();
    await window.waitForStatus("Sandbox: off");
    await window.answer("The sandbox is off. Turn it on for:", "Terminals and Tools");
    await window.notification("The sandbox is on.");
    await until("the settings", () => /"mode": "standard"/.test(readFileSync(world.settingsFile, "utf8")));
  });
});
