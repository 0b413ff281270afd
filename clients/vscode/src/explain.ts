import * as vscode from "vscode";

import { withHint } from "./denialText";
import { pickFolder } from "./folders";
import type { Manager } from "./manager";
import { PolicyExplainRequest, type Access, type Kind } from "./protocol.gen";

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
  const accesses: (vscode.QuickPickItem & { access: Access; example: string })[] = [
    { label: vscode.l10n.t("Read a file or directory"), access: "read", example: "~/.ssh/id_ed25519" },
    { label: vscode.l10n.t("Write or create a file"), access: "write", example: "~/.bashrc" },
    { label: vscode.l10n.t("Run a program"), access: "execute", example: "~/.local/bin/tool" },
    { label: vscode.l10n.t("Connect to a Unix socket"), access: "connect_unix", example: "/var/run/docker.sock" },
    { label: vscode.l10n.t("Connect to a network address"), access: "connect", example: "example.com:443" },
    { label: vscode.l10n.t("Listen on an address"), access: "bind", example: "127.0.0.1:8080" },
    { label: vscode.l10n.t("Use a key of an agent"), access: "sign", example: "SHA256:47DEQpj8…" },
  ];
  const title = vscode.l10n.t("Explain access");
  const chosen = await vscode.window.showQuickPick(accesses, { title, placeHolder: vscode.l10n.t("Which access?") });
  if (chosen === undefined) return;
  const target = await vscode.window.showInputBox({
    title: `${title}: ${chosen.label}`,
    prompt: vscode.l10n.t("For example: {0}", chosen.example),
    value: chosen.example.startsWith("~") ? "~/" : "",
  });
  if (target === undefined || target === "") return;
  await answer(manager, folder.uri.fsPath, "terminal", chosen.access, target, copy);
}

async function answer(
  manager: Manager,
  projectDir: string,
  kind: Kind,
  access: Access,
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
  const choice = await vscode.window.showInformationMessage(withHint(message, hint), ...buttons);
  if (choice === copyIt && setting !== undefined && value !== undefined) await copy(setting, value);
  if (choice === open && rule?.line !== undefined) {
    const selection = new vscode.Range(rule.line - 1, 0, rule.line - 1, 0);
    await vscode.window.showTextDocument(vscode.Uri.file(rule.file), { selection });
  }
}
