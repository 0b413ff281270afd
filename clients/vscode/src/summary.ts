import { line } from "./display";
import type { InitializeResult, Policy, Protections } from "./protocol.gen";

/** How a folder stands, in one word. */
export type Summary = "full" | "degraded" | "none" | "off";

/** Which of a folder's sessions the settings sandbox. */
export interface Policies {
  terminal: Policy;
  tool: Policy;
}

/** Answers the protections that a folder's settings ask for and this machine does not fully enforce. */
export function missing(protections: Protections, policies: Policies): string[] {
  const restricted = [policies.terminal, policies.tool].filter((policy) => policy.restricted);
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
export function summarize(initializeResult: InitializeResult, policies: Policies): Summary {
  if (!policies.terminal.restricted && !policies.tool.restricted) return "off";
  const { enforcement } = initializeResult.capabilities;
  if (enforcement["filesystem"]?.status === "absent") return "none";
  return missing(enforcement, policies).length > 0 ? "degraded" : "full";
}

/** Makes text harmless within Markdown, on one line: the end of a line would be the end of a table's row. */
export function escapeMarkdown(text: string): string {
  return line(text).replace(/[\\`*_{}[\]()#+\-.!<>|~$&@:]/g, "\\$&");
}
