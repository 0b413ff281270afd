// Package hung tests that a file system which does not answer stops nobody but
// who needs it: not another session, not the list of sessions, and not the
// sidecar's end.
package hung
