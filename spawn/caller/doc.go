// Package caller keeps what a program in the foreground has from its caller as
// it would be without this process between them: which signals arrive, which
// are ignored, how an end looks, and the modes of the terminal afterwards. See
// docs/design/exec.md.
package caller
