import { createHash } from "node:crypto";

/**
 * Names the sandbox that the commands of one chat share. VS Code does not say what a token is; in version 1.139 it names
 * the chat, by a URI or a string. Other callers share one.
 */
export function groupOf(token: unknown): string {
  const { sessionResource, sessionId } = (token ?? {}) as { sessionResource?: unknown; sessionId?: unknown };
  const chat = address(sessionResource) ?? (typeof sessionId === "string" ? sessionId : undefined);
  if (chat === undefined) return "agent";
  return `chat ${createHash("sha256").update(chat).digest("hex").slice(0, 16)}`;
}

/** The text of a URI, from its parts: its own text depends on what was asked of it before. */
function address(uri: unknown): string | undefined {
  if (typeof uri !== "object" || uri === null) return undefined;
  const { scheme, authority, path, query, fragment } = uri as Record<string, unknown>;
  const parts = [scheme, authority, path, query, fragment];
  return typeof scheme === "string" && typeof path === "string" ? JSON.stringify(parts) : undefined;
}
