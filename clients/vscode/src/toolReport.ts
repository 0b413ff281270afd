import { json, line } from "./display";
import type { Excerpt } from "./plain";
import type { DeniedParams, ExitStatus, SandboxReport } from "./protocol.gen";

/** How a tool's command ended. */
export interface Outcome {
  status: ExitStatus;
  output: Excerpt;
  denied: DeniedParams[];
  hints: string[];
  /** How many of its processes still run. */
  background: number;
  sandbox: SandboxReport | undefined;
  /**
   * The time limit in seconds, if the command was killed for it; else
   * undefined.
   */
  timedOut: number | undefined;
}

/**
 * Writes the report for a model: how the command ended, its sandbox, its
 * denials, and last its output. Whatever follows the output could be forged by
 * it.
 */
export function report(outcome: Outcome): string {
  const { text } = outcome.output.text((missing) => `[${missing} ${missing === 1 ? "byte" : "bytes"} of output omitted here]`);
  const lines: string[] = [];
  const { exitCode, signal } = outcome.status;
  if (outcome.timedOut !== undefined)
    lines.push(`Timed out after ${outcome.timedOut} s: the command and its processes were killed.`);
  else if (signal !== null) lines.push(`Ended by ${signal}.`);
  else lines.push(`Exit code: ${exitCode ?? "unknown"}`);
  const sandbox = outcome.sandbox;
  if (sandbox !== undefined) {
    lines.push(`Sandbox: ${sandbox.status}`);
    for (const warning of sandbox.warnings) lines.push(`Warning: ${line(warning)}`);
  }
  if (outcome.background > 0)
    lines.push(`Background: ${outcome.background} of its processes still ${outcome.background === 1 ? "runs" : "run"}.`);
  lines.push(...denialLines(outcome.denied));
  for (const hint of outcome.hints) lines.push(`Hint: ${line(hint)}`);
  const output = text.trimEnd();
  lines.push(output === "" ? "No output." : `Output, to the end of this text:\n${output}`);
  return lines.join("\n");
}

/**
 * How many denials get a line each. A model reads every line, and a command
 * that searches a tree can cause thousands.
 */
const maxDenialLines = 20;

/** Formats one line for each distinct denial, and one for the rest. */
function denialLines(denied: DeniedParams[]): string[] {
  const merged = new Map<string, { denial: DeniedParams; count: number }>();
  for (const denial of denied) {
    const key = `${denial.access} ${denial.target} ${denial.detail ?? ""}`;
    const before = merged.get(key);
    merged.set(key, { denial, count: (before?.count ?? 0) + denial.count });
  }
  const lines = [...merged.values()].slice(0, maxDenialLines).map(({ denial, count }) => {
    const by = denial.process === undefined ? "" : ` (${json(denial.process.name)})`;
    const times = count > 1 ? `, ${count} times` : "";
    const detail = denial.detail === undefined ? "" : `, ${line(denial.detail)}`;
    return `Refused by the sandbox: ${denial.access} ${json(denial.target)}${detail}${by}${times}${advice(denial)}`;
  });
  const missed = denied.reduce((sum, denial) => sum + (denial.missed ?? 0), 0);
  const more = merged.size - lines.length + missed;
  if (more > 0) lines.push(`Refused by the sandbox: ${more} more`);
  return lines;
}

function advice({ suggestion, hint }: DeniedParams): string {
  const parts = [];
  if (suggestion !== undefined)
    parts.push(`the user can allow it with the setting "${suggestion.setting}": ${json(suggestion.value)}`);
  if (hint !== undefined) parts.push(line(hint));
  return parts.map((part) => `; ${part}`).join("");
}
