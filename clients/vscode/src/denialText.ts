import { json, text } from "./display";
import { fromHome } from "./home";
import type { Suggestion } from "./protocol.gen";

/**
 * Appends a hint as a sentence. The sidecar writes hints in lower case, without
 * a full stop.
 */
export function withHint(message: string, hint: string | undefined): string {
  return hint === undefined || hint === "" ? message : `${message} ${hint.charAt(0).toUpperCase()}${hint.slice(1)}.`;
}

/** The value of a suggestion, as the user would write it. */
export function valueOf({ value }: Suggestion): string {
  return text(json(typeof value === "string" ? fromHome(value) : value));
}
