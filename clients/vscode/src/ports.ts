import * as vscode from "vscode";
import { ResponseError } from "vscode-jsonrpc/node";

import { text } from "./display";
import { describe } from "./errors";
import type { Manager } from "./manager";
import { inform } from "./notices";
import {
  ErrorCodes,
  ForwardPortRequest,
  ListGroupsRequest,
  ListRequest,
  type ForwardPortParams,
  type ForwardPortResult,
} from "./protocol.gen";
import type { Terminals } from "./terminals";

/** Where a server runs: in a session, or among what the sessions of a group have left. */
type Where = Omit<ForwardPortParams, "port" | "localPort">;

/** Shows a server of a session at a port of this machine. */
export class Ports {
  constructor(
    private readonly manager: Manager,
    private readonly terminals: Terminals,
  ) {}

  /** Asks which port, and opens it until the session ends. */
  async open(): Promise<void> {
    const where = await this.where();
    if (where === undefined) return;
    const title = vscode.l10n.t("Open a Port of This Session");
    const port = await ask(title, vscode.l10n.t("Where the server listens in the session, such as 3000"));
    if (port === undefined) return;
    const result = await this.forward(title, where, port);
    if (result === undefined) return;
    const [browser, copy] = [vscode.l10n.t("Open in Browser"), vscode.l10n.t("Copy Address")];
    const message = result.shared
      ? vscode.l10n.t("The session shares this machine's localhost: {0}", result.address)
      : vscode.l10n.t("Port {0} of the session is at {1} until it ends.", port, result.address);
    const choice = await inform(message, browser, copy);
    const url = `http://${result.address}`;
    if (choice === browser) await vscode.env.openExternal(vscode.Uri.parse(url));
    if (choice === copy) await vscode.env.clipboard.writeText(url);
  }

  /** Asks for another port of this machine as long as one cannot be opened. */
  private async forward(title: string, where: Where, port: number): Promise<ForwardPortResult | undefined> {
    let localPort: number | undefined = port;
    while (localPort !== undefined) {
      try {
        return await this.manager.request(ForwardPortRequest, { ...where, port, localPort });
      } catch (error) {
        if (!(error instanceof ResponseError) || error.code !== ErrorCodes.portNotForwarded) throw error;
        localPort = await ask(title, describe(error));
      }
    }
    return undefined;
  }

  /**
   * Returns the session of the active terminal, else the only one that runs; if
   * there are several, the one that the user selects. What an agent has left in
   * the background is one, too.
   */
  private async where(): Promise<Where | undefined> {
    const active = this.terminals.of(vscode.window.activeTerminal)?.options.sessionId;
    const items = this.manager.now === undefined ? [] : [...(await this.sessions()), ...(await this.groups())];
    const front = items.find(({ where }) => where.sessionId !== undefined && where.sessionId === active);
    if (front !== undefined) return front.where;
    if (items.length === 0) {
      void inform(vscode.l10n.t("No sandboxed session runs."));
      return undefined;
    }
    if (items.length === 1) return items[0]?.where;
    return (await vscode.window.showQuickPick(items, { title: vscode.l10n.t("The server runs in") }))?.where;
  }

  private async sessions(): Promise<Item[]> {
    const { sessions } = await this.manager.request(ListRequest, {});
    return sessions
      .filter(({ running }) => running)
      .map(({ sessionId, kind, cwd, pid }) => ({
        label: kind === "tool" ? vscode.l10n.t("An agent's command") : vscode.l10n.t("A terminal"),
        description: text(cwd),
        detail: vscode.l10n.t("Process {0}", pid),
        where: { sessionId },
      }));
  }

  /** The groups in which no session runs, but something that sessions have left. */
  private async groups(): Promise<Item[]> {
    const { groups } = await this.manager.request(ListGroupsRequest, {});
    return groups
      .filter(({ sessions, processes }) => sessions === 0 && processes > 0)
      .map(({ group, projectDir, processes }) => ({
        label: vscode.l10n.t("What an agent has left running"),
        description: text(projectDir),
        detail: vscode.l10n.t("{0} processes", processes),
        where: { group, projectDir },
      }));
  }
}

type Item = vscode.QuickPickItem & { where: Where };

async function ask(title: string, prompt: string): Promise<number | undefined> {
  const answer = await vscode.window.showInputBox({
    title,
    prompt,
    validateInput: (value) =>
      portOf(value) === undefined && value !== "" ? vscode.l10n.t("A port is a number from 1 to 65535.") : undefined,
  });
  return answer === undefined ? undefined : portOf(answer);
}

function portOf(value: string): number | undefined {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : 0;
  return port >= 1 && port <= 65535 ? port : undefined;
}
