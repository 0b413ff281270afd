/**
 * Returns the word that a problem suggests instead, such as "enabled". Only a
 * plain word counts, as it is written into a file.
 */
export function suggestedWord(message: string): string | undefined {
  return /did you mean "([\w.-]+)"\?$/.exec(message)?.[1];
}
