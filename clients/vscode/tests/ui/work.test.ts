import * as assert from "node:assert/strict";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";
import { until } from "../harness/until";

describe("ordinary work", () => {
  const fixture = useFixture({
    prepare: (world) => {
      world.write(path.join(world.project, "main.c"), "int main(void) { return 0; }\n");
      world.write(path.join(world.home, ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@example.org\n");
    },
  });

  it("causes at most three notifications", async () => {
    const { window, world } = fixture();
    await window.newTerminal();
    const remote = path.join(world.project, "remote.git");
    const run = (line: string) => window.run(`clear; ${line}; echo status=$?`, /^status=0$/m);
    const shows = (text: RegExp) => until(String(text), async () => text.test(await window.terminal()));
    await run("git init -q -b main . && git add main.c && git commit -qm first");
    // An editor and a monitor use the whole screen, and leave it.
    await window.type("clear; vim main.c; echo status=$?");
    await shows(/^~\s*$/m);
    await window.type(":%s/0/0 + 0/");
    await shows(/0 \+ 0/);
    await window.type(":wq");
    await shows(/^status=0$/m);
    await run("gcc -o main main.c && ./main");
    await window.type("clear; htop; echo status=$?");
    await shows(/F10 ?Quit/);
    await window.page.keyboard.press("q");
    await shows(/^status=0$/m);
    await run("sh -c 'test -x main' && git commit -qam second && git log -p -1 | grep -q '0 + 0'");
    await run(`git init -q --bare ${remote} && git remote add origin ${remote} && git push -qu origin main`);
    await run("ps >/dev/null && ls -la >/dev/null && env >/dev/null && history >/dev/null");
    await run("git checkout -qb topic && git rebase -q main && git stash list");
    await window.newTerminal();
    await window.type("exit");
    await window.command("Terminal: Kill All Terminals");
    await window.newTerminal();
    const all = await (await window.listed(/./)).allInnerTexts();
    process.stdout.write(`      ${all.length} notifications: ${JSON.stringify(all)}\n`);
    assert.ok(all.length <= 3, all.join("\n"));
  });
});
