/**
 * Appends a hint as a sentence. The sidecar writes hints in lower case, without
 * a full stop.
 */
export function withHint(text: string, hint: string | undefined): string {
  return hint === undefined || hint === "" ? text : `${text} ${hint.charAt(0).toUpperCase()}${hint.slice(1)}.`;
}
