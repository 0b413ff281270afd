// Package shells is about this program in the place of a shell. Many programs
// start a shell and let the user name only its path. If that path is a link to
// this program, it starts the real shell in a session.
//
// [CalledAs] recognises the name of such a link, [Invocation] reads a shell's
// arguments, and [Find] finds the real shell. [Install] makes the links, and
// [Recipes] says what to write into the settings of other programs.
package shells
