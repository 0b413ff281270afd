// Package doors starts the same command by each front door of the program, in
// the same situations, and compares what happens with the table in
// docs/design/session.md.
package doors
