/**
 * The title of the terminal profile in package.json. It has no translation: the
 * user's settings name the default profile by its title, and VS Code opens an
 * unsandboxed shell for a title that it does not know.
 */
export const profileTitle = "Sandboxed Terminal";
