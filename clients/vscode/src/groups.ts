import * as vscode from "vscode";

import { text } from "./display";
import type { Manager } from "./manager";
import { inform } from "./notices";
import { ListGroupsRequest } from "./protocol.gen";

/** Ends what the commands of agents have left running. */
export class Groups {
  constructor(private readonly manager: Manager) {}

  /** Asks for the agent, if there are several, and ends all of its processes. */
  async end(): Promise<void> {
    const groups = this.manager.now === undefined ? [] : (await this.manager.request(ListGroupsRequest, {})).groups;
    const items = groups
      .filter(({ processes }) => processes > 0)
      .map(({ group, projectDir, processes, startedAt }) => ({
        label: text(projectDir),
        description: vscode.l10n.t("{0} processes", processes),
        detail: vscode.l10n.t("Since {0}", new Date(startedAt).toLocaleString(vscode.env.language)),
        group,
        projectDir,
      }));
    if (items.length === 0) {
      void inform(vscode.l10n.t("No agent has left a process running."));
      return;
    }
    const title = vscode.l10n.t("End All Processes of an Agent");
    const chosen = await vscode.window.showQuickPick(items, { title });
    if (chosen === undefined) return;
    const { sessions } = await this.manager.get();
    const { remaining } = await sessions.closeGroup(chosen.group, chosen.projectDir);
    if (remaining === 0) void inform(vscode.l10n.t("The processes of this agent have ended."));
    else throw new Error(vscode.l10n.t("{0} processes could not be ended.", remaining));
  }
}
