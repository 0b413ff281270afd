import * as vscode from "vscode";

import { brief, line } from "./display";

/** How many characters a notification has, unless its words alone have more. */
export const longest = 100;

let log: vscode.LogOutputChannel | undefined;

/** Says where the whole text of a shortened notification goes. */
export function logTo(channel: vscode.LogOutputChannel): void {
  log = channel;
}

type Show = (message: string, ...items: string[]) => Thenable<string | undefined>;

/**
 * Shows a notification, shortened to one or two lines, and returns the button
 * that was chosen. If it has none, the log shows the whole text.
 */
async function show(how: Show, message: string, buttons: string[]): Promise<string | undefined> {
  const text = brief(message, longest);
  if (text === message) return how(text, ...buttons);
  log?.info(line(message));
  if (buttons.length > 0) return how(text, ...buttons);
  const open = vscode.l10n.t("Show Log");
  if ((await how(text, open)) === open) log?.show();
  return undefined;
}

/** Shows what was done. */
export function inform(message: string, ...buttons: string[]): Promise<string | undefined> {
  return show((text, ...items) => vscode.window.showInformationMessage(text, ...items), message, buttons);
}

/** Shows what the user should look at. */
export function warn(message: string, ...buttons: string[]): Promise<string | undefined> {
  return show((text, ...items) => vscode.window.showWarningMessage(text, ...items), message, buttons);
}

/** Shows what failed. */
export function fail(message: string, ...buttons: string[]): Promise<string | undefined> {
  return show((text, ...items) => vscode.window.showErrorMessage(text, ...items), message, buttons);
}
