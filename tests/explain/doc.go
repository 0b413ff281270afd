// Package explain tests that what policy/explain says is what a process inside
// meets, for all that a session can name and by each front that starts sessions.
package explain
