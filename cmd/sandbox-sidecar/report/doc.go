// Package report tells the window of an editor about the session of a shell, and
// asks there. [Report] is that; [Held] keeps back what would be printed
// otherwise.
package report
