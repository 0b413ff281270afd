import { line } from "./display";
import type { InitializeResult, Policy, Protections } from "./protocol.gen";

/** The sandbox of a folder, in one word. */
export type Summary = "full" | "degraded" | "none" | "off";

/** The policies of a folder's sessions. */
export interface Policies {
  terminal: Policy;
  tool: Policy;
}

/**
 * Returns the protections that a folder's settings require and that this
 * machine does not fully enforce.
 */
export function missing(protections: Protections, policies: Policies): string[] {
  const restricted = [policies.terminal, policies.tool].filter((policy) => policy.restricted);
  return Object.entries(protections)
    .filter(([name, { status }]) => {
      if (status === "enforced") return false;
      if (name === "denials") return false; // it reports denials, and denies nothing itself
      if (name === "limits") return false; // a session that takes much reaches no more
      if (name === "toolchain_caches") return restricted.some((policy) => policy.privateCaches.length > 0);
      if (name === "network") return restricted.some((policy) => !policy.allowNetwork);
      if (name === "protected_paths") return restricted.some((policy) => policy.protectedPaths.length > 0);
      return true;
    })
    .map(([name]) => name);
}

/**
 * Returns the protections of a session that are not fully enforced. One without
 * a mechanism was not requested, and denials and limits protect nothing.
 */
export function unenforced(protections: Protections): string[] {
  return Object.entries(protections)
    .filter(([, { status, mechanism }]) => status !== "enforced" && mechanism !== "")
    .map(([name]) => name)
    .filter((name) => name !== "denials" && name !== "limits");
}

/** Reports whether this machine lacks what every sandbox needs. */
export function cannotSandbox(initializeResult: InitializeResult): boolean {
  return initializeResult.capabilities.enforcement["filesystem"]?.status === "absent";
}

/** Summarizes the protection of a folder's sessions on this machine. */
export function summarize(initializeResult: InitializeResult, policies: Policies): Summary {
  if (!policies.terminal.restricted && !policies.tool.restricted) return "off";
  if (cannotSandbox(initializeResult)) return "none";
  return missing(initializeResult.capabilities.enforcement, policies).length > 0 ? "degraded" : "full";
}

/**
 * Escapes text for Markdown, on one line: a line break would end a table's row.
 */
export function escapeMarkdown(text: string): string {
  return line(text).replace(/[\\`*_{}[\]()#+\-.!<>|~$&@:]/g, "\\$&");
}
