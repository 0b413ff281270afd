// Package explain tests that what policy/explain says is what a process inside
// meets, for all that a session can name.
package explain
