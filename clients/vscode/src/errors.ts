import { ResponseError } from "vscode-jsonrpc/node";

import { line } from "./display";
import type { ErrorData } from "./protocol.gen";

/** Answers one line for the user, fit to be shown: what failed, and what can be done about it. */
export function describe(error: unknown): string {
  if (error instanceof ResponseError) {
    const hint = (error as ResponseError<ErrorData | undefined>).data?.hint;
    return line(hint === undefined || hint === "" ? error.message : `${error.message} (${hint})`);
  }
  return line(error instanceof Error ? error.message : String(error));
}
