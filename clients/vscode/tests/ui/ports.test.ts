import * as assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";

import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";

/** Listens at a free port of this machine. */
async function listen(): Promise<{ port: number; close: () => Promise<void> }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, close: () => new Promise((resolve) => void server.close(() => resolve())) };
}

describe("a server in a session", () => {
  const fixture = useFixture({ prepare: (world) => world.settings({ enabled: true, allow_network: false }) });

  it("is shown at a port of this machine until the session ends", async () => {
    const { window } = fixture();
    const [taken, free] = [await listen(), await listen()];
    await free.close();
    await window.newTerminal();
    await window.run(
      `/usr/bin/python3 -c 'import http.server as h; s = h.HTTPServer(("127.0.0.1", ${taken.port}), ` +
        `h.SimpleHTTPRequestHandler); print("ser" + "ving", flush=True); s.serve_forever()'`,
      /^serving$/m,
    );
    await window.command("Sandbox: Open a Port of This Session…");
    await window.enter("Where the server listens in the session", String(taken.port));
    await window.enter("another program uses it", String(free.port));
    const address = `127.0.0.1:${free.port}`;
    await window.answer(`Port ${taken.port} of the session is at ${address} until it ends.`, "Copy Address");
    await until("the address", async () => (await window.clipboard()) === `http://${address}`);
    assert.equal((await fetch(`http://${address}`)).status, 200);
    await window.command("Terminal: Kill the Active Terminal Instance");
    await until("the port is closed", () =>
      fetch(`http://${address}`).then(
        () => false,
        () => true,
      ),
    );
    await taken.close();
  });
});
