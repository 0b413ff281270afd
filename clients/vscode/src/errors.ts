import { ResponseError } from "vscode-jsonrpc/node";

import { line } from "./display";
import type { ErrorData } from "./protocol.gen";

/** Returns an error as one line for the user: what failed, and what to do. */
export function describe(error: unknown): string {
  if (error instanceof ResponseError) {
    const hint = (error as ResponseError<ErrorData | undefined>).data?.hint;
    return line(hint === undefined || hint === "" ? error.message : `${error.message} (${hint})`);
  }
  return line(error instanceof Error ? error.message : String(error));
}
