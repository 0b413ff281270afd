// Package hung tests that a file system which does not answer delays only the
// requests that need it: not another session, not the list of sessions, and not
// the sidecar's end.
package hung
