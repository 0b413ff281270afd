// Package printed reads what programs print about refusals.
//
// Programs say what failed, and often nobody else does: Landlock tells no
// ordinary user, and looking at every open is slow. A [Scanner] takes a
// session's output as it passes, and finds the lines that have the words of
// EACCES, EPERM, EROFS or ENETUNREACH. [Parse] takes the paths and addresses
// from such a line. Both believe nothing: what they find is asked of the policy
// before it is reported. docs/design/printed-refusals.md says more.
package printed
