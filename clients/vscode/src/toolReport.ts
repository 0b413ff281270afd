import { json, line } from "./display";
import type { Excerpt } from "./plain";
import type { DeniedParams, ExitStatus, SandboxReport } from "./protocol.gen";

/** How a tool's command has ended. */
export interface Outcome {
  status: ExitStatus;
  output: Excerpt;
  denied: DeniedParams[];
  sandbox: SandboxReport | undefined;
  /** Seconds after which it was killed; undefined where it was not. */
  timedOut: number | undefined;
}

/**
 * Writes what a model is told: how the command ended, what confined it, and
 * what was refused; and last the output. What a command prints could forge any
 * line that came behind it.
 */
export function report(outcome: Outcome): string {
  const { text } = outcome.output.text((missing) => `[${missing} bytes of output are left out here]`);
  const lines: string[] = [];
  const { exitCode, signal } = outcome.status;
  if (outcome.timedOut !== undefined)
    lines.push(`Killed, with everything that it had started: it took longer than ${outcome.timedOut} s.`);
  else if (signal !== null) lines.push(`Ended by ${signal}.`);
  else lines.push(`Exit code: ${exitCode ?? "unknown"}`);
  const sandbox = outcome.sandbox;
  if (sandbox !== undefined) {
    lines.push(`Sandbox: ${sandbox.status}`);
    for (const warning of sandbox.warnings) lines.push(`Warning: ${line(warning)}`);
  }
  lines.push(...refusals(outcome.denied));
  const output = text.trimEnd();
  lines.push(output === "" ? "No output." : `Output, to the end of this text:\n${output}`);
  return lines.join("\n");
}

/** So many refusals have a line each: a model reads them all, and a command that searches a tree meets thousands. */
const most = 20;

/** Writes a line for each thing that was refused, however often, and one for those that are too many. */
function refusals(denied: DeniedParams[]): string[] {
  const folded = new Map<string, { what: DeniedParams; count: number }>();
  for (const what of denied) {
    const key = `${what.access} ${what.target}`;
    const before = folded.get(key);
    folded.set(key, { what, count: (before?.count ?? 0) + what.count });
  }
  const lines = [...folded.values()].slice(0, most).map(({ what, count }) => {
    const who = what.process === undefined ? "" : ` (${json(what.process.name)})`;
    const times = count > 1 ? `, ${count} times` : "";
    return `Refused by the sandbox: ${what.access} ${json(what.target)}${who}${times}${advice(what)}`;
  });
  const missed = denied.reduce((sum, what) => sum + (what.missed ?? 0), 0);
  const more = folded.size - lines.length + missed;
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
