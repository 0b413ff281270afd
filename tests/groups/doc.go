// Package groups tests that sessions of one group share a sandbox, that others do
// not, and that nothing of a group outlives it.
package groups
