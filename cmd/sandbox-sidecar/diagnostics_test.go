//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
)

// A file that could not be opened for want of descriptors may be right.
func TestDoubtError_HintsAtTheCause(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ file, message, want string }{
		{managed.File, "expected a comma", "your organisation"},
		{managed.File, "cannot be read: " + syscall.EMFILE.Error(), "ulimit -n"},
		{managed.File, "cannot be read: " + syscall.ENFILE.Error(), "ulimit -n"},
		{"/home/ada/settings.json", "expected a comma", "fix the file"},
		{"/home/ada/settings.json", "cannot be read: " + syscall.EMFILE.Error(), "ulimit -n"},
	} {
		doubt := &compile.Doubt{FileDiagnostic: settings.FileDiagnostic{File: test.file}}
		doubt.Message = test.message
		if got := (&doubtError{doubt: doubt}).hint(); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s: %s", test.file, test.message, got)
		}
	}
}
