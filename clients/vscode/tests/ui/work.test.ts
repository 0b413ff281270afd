import * as assert from "node:assert/strict";
import * as path from "node:path";

import { useFixture } from "../harness/fixture";

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
    for (const line of [
      "git init -q -b main . && git add main.c && git commit -qm first",
      "sed -i 's/0/0 + 0/' main.c && gcc -o main main.c && ./main",
      "sh -c 'test -x main' && git commit -qam second",
      `git init -q --bare ${remote} && git remote add origin ${remote} && git push -qu origin main`,
      "ps >/dev/null && ls -la >/dev/null && env >/dev/null && history >/dev/null",
      "git checkout -qb topic && git rebase -q main && git stash list",
    ])
      await window.run(`clear; ${line}; echo status=$?`, /^status=0$/m);
    await window.newTerminal();
    await window.type("exit");
    await window.command("Terminal: Kill All Terminals");
    await window.newTerminal();
    const all = await (await window.listed(/./)).allInnerTexts();
    process.stdout.write(`      ${all.length} notifications: ${JSON.stringify(all)}\n`);
    assert.ok(all.length <= 3, all.join("\n"));
  });
});
