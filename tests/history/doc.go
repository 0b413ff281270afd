// Package history tests that shells and other programs remember what was typed
// in a project, and that nothing of the user's own files changes.
package history
