import * as vscode from "vscode";

import type { DeniedParams, RequestAccessParams } from "./protocol.gen";

/** Says in one sentence what was refused, or what has happened to a protected path. */
export function denialText({ access, target, process, count }: DeniedParams): string {
  const who = process?.name ?? vscode.l10n.t("a program");
  const what = refused(access, who, target);
  return count > 1 ? vscode.l10n.t("{0} ({1} times)", what, count) : what;
}

/** Says in one sentence what a program wants to be allowed. */
export function wishText({ access, target, process }: RequestAccessParams): string {
  const who = process?.name ?? vscode.l10n.t("A program");
  switch (access) {
    case "read":
      return vscode.l10n.t("{0} wants to read {1}, and waits.", who, target);
    case "create":
      return vscode.l10n.t("{0} wants to create {1}, and waits.", who, target);
    default:
      return vscode.l10n.t("{0} wants to write {1}, and waits.", who, target);
  }
}

/** Adds what the sidecar has to say on it, which it says without a capital letter and a full stop. */
export function withHint(text: string, hint: string | undefined): string {
  return hint === undefined || hint === "" ? text : `${text} ${hint.charAt(0).toUpperCase()}${hint.slice(1)}.`;
}

function refused(access: string, who: string, target: string): string {
  switch (access) {
    case "read":
      return vscode.l10n.t("The sandbox refused {0} to read {1}.", who, target);
    case "write":
      return vscode.l10n.t("The sandbox refused {0} to write {1}.", who, target);
    case "create":
      return vscode.l10n.t("The sandbox refused {0} to create {1}.", who, target);
    case "remove":
      return vscode.l10n.t("The sandbox refused {0} to remove {1}.", who, target);
    case "execute":
      return vscode.l10n.t("The sandbox refused {0} to run {1}.", who, target);
    case "connect_unix":
    case "connect":
      return vscode.l10n.t("The sandbox refused {0} to connect to {1}.", who, target);
    case "bind":
      return vscode.l10n.t("The sandbox refused {0} to wait for connections at {1}.", who, target);
    case "signal":
      return vscode.l10n.t("The sandbox refused {0} to signal process {1}.", who, target);
    case "protected_write":
      return vscode.l10n.t("The sandbox refused to change the protected path {0}.", target);
    case "protected_created":
      return vscode.l10n.t("The protected path {0} did not exist and was created while a sandboxed session ran. Look at it before you use it.", target);
    case "protected_replaced":
      return vscode.l10n.t("The protected path {0} was replaced while a sandboxed session ran, which may write it now.", target);
    case "protected_written":
      return vscode.l10n.t("The protected path {0} was written in a sandboxed session.", target);
    default:
      return vscode.l10n.t("The sandbox refused {0} the access {1} to {2}.", who, access, target);
  }
}
