package harness

import "regexp"

// Unfold undoes how the command line folds its answers at 80 columns: an
// indented line continues the one before it. So a text may not depend on the
// length of a path.
func Unfold(text string) string { return indented.ReplaceAllString(text, " ") }

var indented = regexp.MustCompile(`(\x1b\[K)?\r?\n +`)
