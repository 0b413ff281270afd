/**
 * The title of the terminal profile in package.json. It has no translation: the
 * user's settings name the default profile by its title, and VS Code opens an
 * unsandboxed shell for a title that it does not know.
 */
export const profileTitle = "Sandboxed Terminal";

/**
 * Reports whether VS Code's settings of the default profile and of profiles have
 * it open a terminal of this extension. A profile of that name comes before the
 * extension's, and null takes that away.
 */
export function opensOurs(defaultProfile: unknown, profiles: unknown): boolean {
  const others = typeof profiles === "object" && profiles !== null ? profiles : {};
  return defaultProfile === profileTitle && !(profileTitle in others);
}
