import * as vscode from "vscode";

import { Allow } from "./allow";
import { Approvals } from "./approvals";
import { Confine, scopes } from "./confine";
import { Counter } from "./count";
import { DefaultProfile } from "./defaultProfile";
import { Denials } from "./denials";
import { auditTrail, doctor } from "./doctor";
import { text } from "./display";
import { Documents } from "./document";
import { describe } from "./errors";
import { explain, pickKind } from "./explain";
import { pickFolder } from "./folders";
import { Groups } from "./groups";
import { applyTos } from "./initialize";
import { Manager } from "./manager";
import { logTo } from "./notices";
import { policyPage } from "./policyText";
import { Ports } from "./ports";
import { PolicyGetRequest, SettingsChangedNotification } from "./protocol.gen";
import { QuickFixes } from "./quickFixes";
import { replaceTerminal } from "./replace";
import { Review } from "./review";
import { SettingsDiagnostics } from "./settingsDiagnostics";
import { openSettings, projectSettings, userSettings } from "./settingsFiles";
import { ShellSessions } from "./shellSessions";
import { Stale } from "./stale";
import { Status } from "./status";
import { statusList, type Facts, type GroupName } from "./statusList";
import { Tasks } from "./tasks";
import { isDefault, Terminals } from "./terminals";
import { RunTool, type ToolInput } from "./tool";
import { Trust } from "./trust";
import { TurnOn } from "./turnOn";

/** The interface for other extensions and for the tests. */
export interface Api {
  /**
   * Returns the process id of the window's sidecar; undefined if none is
   * running.
   */
  sidecarPid(): number | undefined;
  /** Opens a sandboxed terminal. */
  openTerminal(cwd: string, projectDir: string): Promise<vscode.Terminal>;
  /**
   * Returns the question that the user answers before an agent's command runs.
   */
  toolConfirmation(input: ToolInput): Promise<vscode.PreparedToolInvocation>;
}

let manager: Manager | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const log = vscode.window.createOutputChannel("Sandbox", { log: true });
  context.subscriptions.push(log);
  logTo(log);
  const sidecar = (manager = new Manager(context, log));
  const terminals = new Terminals(context, sidecar, log);
  const shells = new ShellSessions(context, sidecar);
  const stale = new Stale(sidecar, terminals, shells);
  const documents = new Documents(context);
  const trust = new Trust(context, sidecar, documents, stale);
  const denials = new Denials(context, sidecar, new Allow(sidecar, trust, stale), log);
  const review = new Review(sidecar, log);
  const approvals = new Approvals(context, sidecar, terminals);
  new SettingsDiagnostics(context, sidecar);
  new QuickFixes(context);
  new Tasks(context, terminals);
  const turnOn = new TurnOn(context, sidecar, log, stale);
  terminals.mayOpen = stale.mayOpen = (projectDir) => turnOn.ensure(projectDir);
  const confine = new Confine(context, sidecar, log, () => turnOn.run());
  const defaultProfile = new DefaultProfile(context, sidecar, () => turnOn.run());
  confine.others = () => defaultProfile.keys;
  defaultProfile.others = () => confine.keys;
  shells.follow(confine);
  const counter = new Counter(context, terminals, shells);
  const status = new Status(context, sidecar, terminals, shells, counter, confine);
  confine.refresh().catch((error: unknown) => void sidecar.showFailure(error));
  sidecar.onNotification(SettingsChangedNotification, () => documents.refresh());

  const register = (name: string, run: (argument?: unknown) => unknown) => {
    const command = vscode.commands.registerCommand(`sandboxSidecar.${name}`, async (argument?: unknown) => {
      try {
        return await run(argument);
      } catch (error) {
        log.error(describe(error));
        void sidecar.showFailure(error);
        return undefined;
      }
    });
    context.subscriptions.push(command);
  };
  // A key binding or another extension may say what for; anything else is asked.
  register("turnOn", (argument) => turnOn.run(applyTos.find((word) => word === argument)));
  register("toolsOnly", () => turnOn.run("tool"));
  register("turnOff", () => turnOn.turnOff());
  register("chooseMode", () => turnOn.chooseMode());
  register("confineAll", (argument) => confine.run(scopes.find((word) => word === argument)));
  register("unconfineAll", () => confine.undo());
  register("makeDefault", () => defaultProfile.make());
  register("undoDefault", () => defaultProfile.undo());
  register("replaceTerminal", () => replaceTerminal(terminals, counter, stale));
  register("newTerminal", () => terminals.create());
  register("splitTerminal", () => terminals.split());
  register("reopenStale", () => stale.reopen());
  register("showStatus", () =>
    showStatus({
      on: status.on,
      openInFront: counter.count.active === "open",
      running: sidecar.now !== undefined,
      confined: confine.active,
      isDefault: defaultProfile.active && isDefault(),
      denials: denials.size,
      files: review.size,
      folder: vscode.workspace.workspaceFolders !== undefined,
      trusted: vscode.workspace.isTrusted,
    }),
  );
  register("showPolicy", () => showPolicy(sidecar, documents));
  register("explain", () => explain(sidecar, copySetting));
  register("showDenials", () => denials.list());
  register("allowRefused", (element) => denials.allowElement(element));
  register("copyRefused", (element) => denials.copyElement(element));
  register("clearRefused", () => denials.clear());
  register("answer", (id) => approvals.answer(id));
  register("showReview", () => review.list());
  const ports = new Ports(sidecar, terminals);
  register("openPort", () => ports.open());
  const groups = new Groups(sidecar);
  register("endBackground", () => groups.end());
  register("doctor", async () => {
    const program = await sidecar.program();
    await documents.show(vscode.l10n.t("Sandbox Doctor"), "doctor", () => doctor(program));
  });
  register("showAudit", async () => {
    const program = await sidecar.program();
    await documents.show(vscode.l10n.t("Sandbox Audit Log"), "audit", () => auditTrail(program));
  });
  register("openUserSettings", () => openSettings(userSettings()));
  register("openProjectSettings", async () => {
    const folder = await pickFolder();
    return folder === undefined ? undefined : openSettings(projectSettings(folder.uri.fsPath));
  });
  register("trustProject", () => trust.ask());
  register("untrustProject", () => trust.withdraw());
  register("restart", () => sidecar.restart());
  register("showLog", () => log.show());

  const tool = new RunTool(sidecar);
  context.subscriptions.push(vscode.lm.registerTool(RunTool.id, tool));
  startIfNeeded(context, sidecar);
  return {
    sidecarPid: () => sidecar.now?.sidecar.pid,
    openTerminal: (cwd, projectDir) => terminals.show(cwd, projectDir),
    toolConfirmation: (input) => tool.prepareInvocation({ input }),
  };
}

/**
 * Ends every session before the extension host ends. If the host is killed, the
 * sidecar does the same when its standard input closes.
 */
export async function deactivate(): Promise<void> {
  await manager?.end();
}

/**
 * Starts the sidecar if a settings file is open or a folder has one, because
 * the sidecar checks these files.
 */
function startIfNeeded(context: vscode.ExtensionContext, sidecar: Manager): void {
  const start = () => {
    if (sidecar.state.is === "idle") sidecar.get().catch(() => undefined); // the status bar shows the error
  };
  const isSettings = (document: vscode.TextDocument) =>
    /[/](\.?zed|sandbox-sidecar)[/]settings\.json$/.test(document.uri.path);
  if (vscode.workspace.textDocuments.some(isSettings)) start();
  context.subscriptions.push(
    vscode.workspace.onDidOpenTextDocument((document) => (isSettings(document) ? start() : undefined)),
  );
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    vscode.workspace.fs.stat(vscode.Uri.file(projectSettings(folder.uri.fsPath))).then(start, () => undefined);
  }
}

/** Lists the commands that apply now, in groups. */
async function showStatus(facts: Facts): Promise<void> {
  const titles: Record<GroupName, string> = {
    terminals: vscode.l10n.t("Terminals"),
    switch: vscode.l10n.t("On and off"),
    happened: vscode.l10n.t("What happened"),
    why: vscode.l10n.t("What is allowed"),
    settings: vscode.l10n.t("Settings"),
    sidecar: vscode.l10n.t("The sidecar"),
  };
  const labels: Record<string, string> = {
    replaceTerminal: `$(replace) ${vscode.l10n.t("Replace the Terminal in Front…")}`,
    newTerminal: `$(shield) ${vscode.l10n.t("New Terminal")}`,
    openPort: `$(radio-tower) ${vscode.l10n.t("Open a Port of This Session…")}`,
    endBackground: `$(debug-stop) ${vscode.l10n.t("End All Processes of an Agent…")}`,
    turnOn: `$(play-circle) ${vscode.l10n.t("Turn On…")}`,
    chooseMode: `$(settings) ${vscode.l10n.t("Choose Mode…")}`,
    turnOff: `$(stop-circle) ${vscode.l10n.t("Turn Off…")}`,
    confineAll: `$(lock) ${vscode.l10n.t("Confine All Terminals, Tasks and Agents…")}`,
    unconfineAll: `$(unlock) ${vscode.l10n.t("Undo Confining All Terminals, Tasks and Agents")}`,
    makeDefault: `$(terminal) ${vscode.l10n.t("Make Sandboxed Terminals the Default")}`,
    undoDefault: `$(discard) ${vscode.l10n.t("Undo Making Sandboxed Terminals the Default")}`,
    showDenials: `$(circle-slash) ${vscode.l10n.t("Show Denials")}`,
    showReview: `$(eye) ${vscode.l10n.t("Show Files to Check")}`,
    showAudit: `$(history) ${vscode.l10n.t("Show Audit Log")}`,
    showPolicy: `$(list-tree) ${vscode.l10n.t("Show Policy")}`,
    explain: `$(question) ${vscode.l10n.t("Explain Access…")}`,
    doctor: `$(pulse) ${vscode.l10n.t("Doctor")}`,
    openUserSettings: `$(settings-gear) ${vscode.l10n.t("Open User Settings")}`,
    openProjectSettings: `$(folder) ${vscode.l10n.t("Open Project Settings")}`,
    trustProject: `$(verified) ${vscode.l10n.t("Trust Project Settings…")}`,
    restart: `$(debug-restart) ${vscode.l10n.t("Restart Sidecar")}`,
    showLog: `$(output) ${vscode.l10n.t("Show Log")}`,
  };
  const items = statusList(facts).flatMap(([group, commands]): (vscode.QuickPickItem & { command?: string })[] => [
    { label: titles[group], kind: vscode.QuickPickItemKind.Separator },
    ...commands.map((command) => ({ label: labels[command] ?? command, command })),
  ]);
  const chosen = await vscode.window.showQuickPick(items, { title: vscode.l10n.t("Sandbox") });
  if (chosen?.command !== undefined) await vscode.commands.executeCommand(`sandboxSidecar.${chosen.command}`);
}

async function showPolicy(sidecar: Manager, documents: Documents): Promise<void> {
  const folder = await pickFolder();
  if (folder === undefined) return;
  const kind = await pickKind(vscode.l10n.t("Show the policy for"));
  if (kind === undefined) return;
  const projectDir = folder.uri.fsPath;
  await documents.show(
    vscode.l10n.t("Sandbox Policy ({0}, {1})", text(folder.name), kind),
    projectDir,
    async () => {
      const { policyId, policy } = await sidecar.request(PolicyGetRequest, { projectDir, kind });
      return policyPage(kind, policyId, policy);
    },
  );
}

async function copySetting(setting: string, value: string): Promise<void> {
  await vscode.env.clipboard.writeText(`"${setting}": ${value}`);
}
