/** Adds what the sidecar has to say on it, which it says without a capital letter and a full stop. */
export function withHint(text: string, hint: string | undefined): string {
  return hint === undefined || hint === "" ? text : `${text} ${hint.charAt(0).toUpperCase()}${hint.slice(1)}.`;
}
