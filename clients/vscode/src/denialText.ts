import { brief, json, shortPath, text } from "./display";
import { fromHome } from "./home";
import type { DeniedParams, Suggestion } from "./protocol.gen";

/**
 * Appends a hint as a sentence. The sidecar writes hints in lower case, without
 * a full stop.
 */
export function withHint(message: string, hint: string | undefined): string {
  return hint === undefined || hint === "" ? message : `${message} ${hint.charAt(0).toUpperCase()}${hint.slice(1)}.`;
}

/** The value of a suggestion, as the user would write it. */
export function valueOf({ value }: Suggestion): string {
  return text(written(value));
}

function written(value: Suggestion["value"]): string {
  return json(typeof value === "string" ? fromHome(value) : value);
}

/** How many characters the side bar of a small window shows in its rows. */
const groupWidth = 20;
const rowWidth = 27;

/** The value of a suggestion, for a row of the side bar. */
export function shortValueOf({ value }: Suggestion): string {
  const whole = written(value);
  return typeof value === "string" ? `"${shortPath(whole.slice(1, -1), groupWidth - 2)}"` : shortPath(whole, groupWidth);
}

/**
 * Why no setting is suggested: the first clause of the hint, for a row of the
 * side bar; undefined if there is none. The editor cuts the row at its end, and
 * its hover has the whole hint.
 */
export function shortReason(hint: string | undefined): string | undefined {
  const clause = hint?.replace(/ (is|are) stored there\b.*$/, "").replace(/(?:[;,]|\.(?= )) .*$/, "");
  const reason = withHint("", clause).trim().replace(/\.$/, "");
  return reason === "" ? undefined : reason;
}

/** What was refused, for a row of the side bar that also holds other characters. */
export function shortRow({ process, access, target }: DeniedParams, others: number): string {
  // The view is narrow, so the words that all share are left out.
  const act = `${process === undefined ? "" : `${text(process.name)}: `}${access.replaceAll("_", " ")}`;
  return `${act} ${shortPath(fromHome(target), Math.max(12, rowWidth - others - act.length - 1))}`;
}

/**
 * How many characters of a question its notification has. Without a button,
 * VS Code shows one line, and cuts what is longer.
 */
const longestQuestion = 54;

/** A question for its notification. That somebody waits is plain there. */
export function shortQuestion(message: string): string {
  return brief(message.replace(/, and waits for your answer\.$/, ""), longestQuestion);
}
