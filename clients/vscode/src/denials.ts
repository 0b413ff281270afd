import * as vscode from "vscode";

import type { Allow } from "./allow";
import { Batcher, commandDelay } from "./batcher";
import { configuration } from "./configuration";
import { json, line } from "./display";
import { describe } from "./errors";
import { shortReason, shortRow, shortValueOf, valueOf, withHint } from "./denialText";
import type { Manager } from "./manager";
import { fail, inform, warn } from "./notices";
import { LimitReachedNotification, ListRequest, StartedNotification, type DeniedParams, type Suggestion } from "./protocol.gen";
import { groupKey, keyOf, Refusals, type Group, type Refusal } from "./refused";

/** The view's id in package.json. */
const view = "sandboxSidecar.refused";

type Element = Group | Refusal;

/**
 * Reports each denial of a session once. The view "Refused by the Sandbox" lists
 * all, grouped by the setting that would allow them.
 */
export class Denials implements vscode.TreeDataProvider<Element> {
  private readonly refusals = new Refusals();
  private readonly changed = new vscode.EventEmitter<undefined>();
  private readonly tree: vscode.TreeView<Element>;
  private readonly batcher = new Batcher<DeniedParams>(
    (denial) => this.tell(this.notify(denial)),
    (all) => this.tell(this.notifySummary(all)),
  );
  /** What happened to protected paths. One command, such as "git init", concerns several. */
  private readonly alarms = new Batcher<DeniedParams>(
    (alarm) => this.tell(this.notify(alarm)),
    (all) => this.tell(this.notifyAlarms(all)),
    commandDelay,
  );
  /** The sessions that the sidecar did not start. */
  private readonly external = new Set<string>();
  /** What the view shows. */
  private shown: Group[] = [];

  readonly onDidChangeTreeData = this.changed.event;

  constructor(
    context: vscode.ExtensionContext,
    private readonly manager: Manager,
    private readonly allow: Allow,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.tree = vscode.window.createTreeView(view, { treeDataProvider: this });
    context.subscriptions.push(this.changed, this.tree);
    manager.onNotification(StartedNotification, ({ sessionId }) => this.external.add(sessionId));
    manager.onDidDeny((denial) => this.record(denial));
    manager.onNotification(LimitReachedNotification, ({ message }) => {
      this.log.info(line(message));
      void warn(line(message));
    });
  }

  private record(denial: DeniedParams): void {
    this.log.info(`${denial.message}${denial.missed === undefined ? "" : ` Not reported: ${denial.missed} more.`}`);
    const before = this.refusals.add(denial);
    this.refresh();
    if (before !== undefined || configuration().denials === "log") return;
    const refused = denial.line !== undefined;
    (refused ? this.batcher : this.alarms).add(denial);
  }

  /** Shows what fails after the user has chosen something. */
  private tell(asked: Promise<void>): void {
    asked.catch((error: unknown) => void fail(describe(error)));
  }

  private refresh(): void {
    this.shown = this.refusals.groups();
    void vscode.commands.executeCommand("setContext", "sandboxSidecar.hasRefused", this.refusals.size > 0);
    this.changed.fire(undefined);
  }

  private async notify(denial: DeniedParams): Promise<void> {
    const { suggestion } = denial;
    const [allow, copy] = [vscode.l10n.t("Allow…"), vscode.l10n.t("Copy Setting")];
    const why = vscode.l10n.t("Why?");
    const buttons = suggestion !== undefined ? [allow, copy] : denial.hint !== undefined ? [why] : [];
    const choice = await warn(denial.message, ...buttons);
    if (choice === why) return this.reveal(denial);
    if (suggestion === undefined || choice === undefined) return;
    if (choice === copy) await copySetting(suggestion);
    else await this.ask(denial);
  }

  private async notifySummary(all: DeniedParams[]): Promise<void> {
    const [show, allow] = [vscode.l10n.t("Show…"), vscode.l10n.t("Allow…")];
    const [first] = all;
    if (first === undefined) return;
    const count = all.reduce((total, { missed }) => total + 1 + (missed ?? 0), 0);
    // One setting for all of them is offered at once.
    const one = first.suggestion !== undefined && all.every(({ suggestion }) => groupKey(suggestion) === groupKey(first.suggestion));
    const choice = await warn(vscode.l10n.t("The sandbox refused {0} operations.", count), ...(one ? [allow] : []), show);
    if (choice === show) await this.list();
    if (choice === allow) await this.ask(first);
  }

  private async notifyAlarms(all: DeniedParams[]): Promise<void> {
    const show = vscode.l10n.t("Show…");
    const text = vscode.l10n.t("Sessions have made or changed {0} protected paths.", all.length);
    if ((await warn(text, show)) === show) await this.list();
  }

  /** How many denials the view has. */
  get size(): number {
    return this.refusals.size;
  }

  /** Shows the view. */
  async list(): Promise<void> {
    if (this.refusals.size === 0) void inform(vscode.l10n.t("Nothing was refused in this window."));
    else await vscode.commands.executeCommand(`${view}.focus`);
  }

  /** Selects a denial in the view. */
  private async reveal(denial: DeniedParams): Promise<void> {
    await this.list();
    const refusal = this.shown.flatMap(({ refusals }) => refusals).find(({ key }) => key === keyOf(denial));
    if (refusal !== undefined) await this.tree.reveal(refusal, { select: true, focus: true });
  }

  /** Empties the view. */
  clear(): void {
    this.refusals.clear();
    this.refresh();
  }

  /** Offers to allow an element of the view; without one, asks which. */
  async allowElement(element: unknown): Promise<void> {
    const group = await this.groupOrPick(element, vscode.l10n.t("Allow…"));
    const denial = group?.refusals[0]?.denial;
    if (denial !== undefined) await this.ask(denial);
  }

  /** Copies the setting of an element of the view; without one, asks which. */
  async copyElement(element: unknown): Promise<void> {
    const group = await this.groupOrPick(element, vscode.l10n.t("Copy Setting"));
    if (group?.suggestion !== undefined) await copySetting(group.suggestion);
  }

  private async groupOrPick(element: unknown, title: string): Promise<Group | undefined> {
    if (element !== undefined) return this.groupOf(element);
    const items = this.shown.flatMap((group) =>
      group.suggestion === undefined
        ? []
        : [{ label: valueOf(group.suggestion), description: group.suggestion.setting, group }],
    );
    if (items.length > 0) return (await vscode.window.showQuickPick(items, { title }))?.group;
    void inform(vscode.l10n.t("Nothing was refused that a setting could allow."));
    return undefined;
  }

  /** Only what the view has given out is accepted. */
  private groupOf(element: unknown): Group | undefined {
    return this.shown.find((group) => group === element || group.refusals.some((refusal) => refusal === element));
  }

  private async ask(denial: DeniedParams): Promise<void> {
    if (denial.suggestion === undefined) return;
    try {
      const project = await this.projectOf(denial.sessionId);
      const external = this.external.has(denial.sessionId);
      await this.allow.ask(denial.message, denial.suggestion, denial.hint, project, external);
    } catch (error) {
      void fail(describe(error));
    }
  }

  private async projectOf(sessionId: string): Promise<string | undefined> {
    const { sessions } = await this.manager.request(ListRequest, {});
    return sessions.find((session) => session.sessionId === sessionId)?.projectDir;
  }

  getChildren(element?: Element): Element[] {
    if (element === undefined) return this.shown;
    return "refusals" in element ? element.refusals : [];
  }

  getParent(element: Element): Element | undefined {
    return "refusals" in element ? undefined : this.groupOf(element);
  }

  getTreeItem(element: Element): vscode.TreeItem {
    return "refusals" in element ? groupItem(element) : refusalItem(element);
  }
}

function groupItem({ key, suggestion, hint, refusals }: Group): vscode.TreeItem {
  const label =
    suggestion === undefined
      ? (shortReason(hint) ?? vscode.l10n.t("No setting allows this."))
      : shortValueOf(suggestion);
  const item = new vscode.TreeItem(label, vscode.TreeItemCollapsibleState.Expanded);
  item.id = key;
  if (suggestion !== undefined) item.description = shortSetting(suggestion);
  item.iconPath = new vscode.ThemeIcon(suggestion === undefined ? "circle-slash" : "lightbulb");
  item.tooltip = suggestion === undefined ? withHint("", hint).trim() || label : withHint(suggestion.message, hint);
  item.contextValue = suggestion === undefined ? "group" : "allowable";
  item.accessibilityInformation = { label: vscode.l10n.t("{0}, {1} refused", item.tooltip, refusals.length) };
  return item;
}

/** What a setting gives, in a word; its name is in the hover. */
function shortSetting({ setting }: Suggestion): string {
  const name = setting.replace(/^(terminal|tool)\./, "");
  if (name === "additional_read_write_paths") return vscode.l10n.t("write");
  if (name === "additional_read_only_paths") return vscode.l10n.t("read");
  return name === "additional_executable_paths" ? vscode.l10n.t("run") : name;
}

function refusalItem({ key, denial, total }: Refusal): vscode.TreeItem {
  const count = total > 1 ? vscode.l10n.t("{0} times", total) : "";
  const item = new vscode.TreeItem(shortRow(denial, count.length));
  item.id = `one ${key}`;
  if (total > 1) item.description = count;
  item.tooltip = withHint(denial.message, denial.hint);
  item.contextValue = denial.suggestion === undefined ? "denial" : "allowable";
  item.accessibilityInformation = { label: `${denial.message} ${count}`.trimEnd() };
  return item;
}

async function copySetting({ setting, value }: Suggestion): Promise<void> {
  await vscode.env.clipboard.writeText(`"${setting}": ${json(value)}`);
}
