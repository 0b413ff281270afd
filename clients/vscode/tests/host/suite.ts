import { existsSync } from "node:fs";
import * as path from "node:path";

import { until } from "../harness/until";
import { extension, folder } from "./setting";

import "./terminal.test";
import "./tool.test";
import "./settings.test";
import "./restart.test";

// A window that is still being set up may never open an extension's terminal; VS Code's own tests wait for it, too.
before(async () => {
  const api = await extension();
  const file = path.join(folder(0), "set-up");
  await until("the window opens terminals", async () => {
    const terminal = api.openTerminal(folder(0), folder(0));
    terminal.sendText(`touch ${file}`);
    const opened = await until("the first terminal", () => existsSync(file), 10).catch(() => false);
    terminal.dispose();
    return opened;
  });
});
