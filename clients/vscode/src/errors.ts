import { ResponseError } from "vscode-jsonrpc/node";

import type { ErrorData } from "./protocol.gen";

/** Answers one line for the user: what failed, and what can be done about it. */
export function describe(error: unknown): string {
  if (error instanceof ResponseError) {
    const hint = (error as ResponseError<ErrorData | undefined>).data?.hint;
    return hint === undefined || hint === "" ? error.message : `${error.message} (${hint})`;
  }
  return error instanceof Error ? error.message : String(error);
}
