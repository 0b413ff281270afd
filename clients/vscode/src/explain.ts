import * as vscode from "vscode";

import { withHint } from "./denialText";
import { brief, quote, text } from "./display";
import { pickFolder } from "./folders";
import { fromHome } from "./home";
import type { Manager } from "./manager";
import { longest } from "./notices";
import { completions, resolved } from "./pathCompletion";
import { PolicyExplainRequest, type Access, type Kind } from "./protocol.gen";

type Choice = vscode.QuickPickItem & { access: Access; example: string; isPath: boolean };

/** Asks whose session it is about. */
export async function pickKind(title: string): Promise<Kind | undefined> {
  const kinds: (vscode.QuickPickItem & { session: Kind })[] = [
    { label: vscode.l10n.t("Terminals"), description: vscode.l10n.t("that you open"), session: "terminal" },
    { label: vscode.l10n.t("Tools"), description: vscode.l10n.t("that agents run"), session: "tool" },
  ];
  return (await vscode.window.showQuickPick(kinds, { title }))?.session;
}

/**
 * Asks for an access, and shows whether a session may do it, by which rule, and
 * which setting would change that.
 */
export async function explain(
  manager: Manager,
  copy: (setting: string, value: string) => Promise<void>,
): Promise<void> {
  const folder = await pickFolder();
  if (folder === undefined) return;
  const title = vscode.l10n.t("Explain access");
  const kind = await pickKind(title);
  if (kind === undefined) return;
  const accesses: Choice[] = [
    { label: vscode.l10n.t("Read a file or directory"), access: "read", example: "~/.ssh/id_ed25519", isPath: true },
    { label: vscode.l10n.t("Write or create a file"), access: "write", example: "~/.bashrc", isPath: true },
    { label: vscode.l10n.t("Run a program"), access: "execute", example: "~/.local/bin/tool", isPath: true },
    {
      label: vscode.l10n.t("Connect to a Unix socket"),
      access: "connect_unix",
      example: "/var/run/docker.sock",
      isPath: true,
    },
    {
      label: vscode.l10n.t("Connect to a network address"),
      access: "connect",
      example: "example.com:443",
      isPath: false,
    },
    { label: vscode.l10n.t("Listen on an address"), access: "bind", example: "127.0.0.1:8080", isPath: false },
    { label: vscode.l10n.t("Use a key of an agent"), access: "sign", example: "SHA256:47DEQpj8…", isPath: false },
  ];
  const chosen = await vscode.window.showQuickPick(accesses, { title, placeHolder: vscode.l10n.t("Which access?") });
  if (chosen === undefined) return;
  const project = folder.uri.fsPath;
  const asked = `${title}: ${chosen.label}`;
  const prompt = vscode.l10n.t("For example: {0}", chosen.example);
  const typed = chosen.isPath
    ? await pickPath(asked, prompt, project)
    : await vscode.window.showInputBox({ title: asked, prompt });
  if (typed === undefined || typed === "") return;
  await answer(manager, project, kind, chosen, chosen.isPath ? resolved(typed, project) : typed, copy);
}

/**
 * Asks for a path, and completes it. The first entry is what is typed; choosing
 * a directory below it goes on in that directory.
 */
function pickPath(title: string, placeholder: string, project: string): Promise<string | undefined> {
  const pick = vscode.window.createQuickPick<vscode.QuickPickItem & { path: string }>();
  pick.title = title;
  pick.placeholder = placeholder;
  let round = 0;
  const complete = async (typed: string) => {
    const own = ++round;
    const found = await completions(typed, project);
    if (own !== round) return; // more was typed meanwhile
    const paths = [...new Set(typed === "" ? found : [typed, ...found])];
    // The entries show text that is typed or escaped, and stay unfiltered.
    pick.items = paths.map((path) => ({ label: text(path), path, alwaysShow: true }));
  };
  return new Promise((resolve) => {
    pick.onDidChangeValue((typed) => void complete(typed));
    pick.onDidAccept(() => {
      const chosen = pick.selectedItems[0]?.path ?? pick.value;
      if (chosen !== pick.value && chosen.endsWith("/")) {
        pick.value = chosen;
        void complete(chosen);
        return;
      }
      resolve(chosen);
      pick.hide();
    });
    pick.onDidHide(() => {
      resolve(undefined);
      pick.dispose();
    });
    void complete("");
    pick.show();
  });
}

async function answer(
  manager: Manager,
  projectDir: string,
  kind: Kind,
  { access, label }: Choice,
  target: string,
  copy: (setting: string, value: string) => Promise<void>,
): Promise<void> {
  const { allowed, message, rule, setting, value, hint } = await manager.request(PolicyExplainRequest, {
    projectDir,
    kind,
    access,
    target,
  });
  const [copyIt, open] = [vscode.l10n.t("Copy Setting"), vscode.l10n.t("Open Rule")];
  const buttons: string[] = [];
  if (!allowed && setting !== undefined && value !== undefined) buttons.push(copyIt);
  if (rule?.line !== undefined) buttons.push(open);
  const first = brief(`${label}: ${quote(fromHome(target))}`, longest);
  const detail = withHint(message, hint);
  const choice = await vscode.window.showInformationMessage(first, { modal: true, detail }, ...buttons);
  if (choice === copyIt && setting !== undefined && value !== undefined) await copy(setting, value);
  if (choice === open && rule?.line !== undefined) {
    const selection = new vscode.Range(rule.line - 1, 0, rule.line - 1, 0);
    await vscode.window.showTextDocument(vscode.Uri.file(rule.file), { selection });
  }
}
