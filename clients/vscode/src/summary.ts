import { line } from "./display";
import type { InitializeResult, Policy, Protections } from "./protocol.gen";

/** How a folder stands, in one word. */
export type Summary = "full" | "degraded" | "none" | "off";

/** Which of a folder's sessions the settings sandbox. */
export interface Routing {
  terminal: Policy;
  tool: Policy;
}

/** Answers the protections that a folder's settings ask for and this machine does not fully enforce. */
export function missing(protections: Protections, routing: Routing): string[] {
  const restricted = [routing.terminal, routing.tool].filter((policy) => policy.restricted);
  return Object.entries(protections)
    .filter(([name, { status }]) => {
      if (status === "enforced") return false;
      if (name === "denials") return false; // tells of refusals, and refuses nothing itself
      if (name === "network") return restricted.some((policy) => !policy.allowNetwork);
      if (name === "protected_paths") return restricted.some((policy) => policy.protectedPaths.length > 0);
      return true;
    })
    .map(([name]) => name);
}

/** Sums up what sessions in a folder get on this machine. */
export function summarize(hello: InitializeResult, routing: Routing): Summary {
  if (!routing.terminal.restricted && !routing.tool.restricted) return "off";
  const { enforcement } = hello.capabilities;
  if (enforcement["filesystem"]?.status === "absent") return "none";
  return missing(enforcement, routing).length > 0 ? "degraded" : "full";
}

/** Makes text harmless within Markdown, on one line: the end of a line would be the end of a table's row. */
export function escapeMarkdown(text: string): string {
  return line(text).replace(/[\\`*_{}[\]()#+\-.!<>|~$&@:]/g, "\\$&");
}
