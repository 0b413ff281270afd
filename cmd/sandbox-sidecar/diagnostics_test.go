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

// What an untrusted project asks for is counted, and all else stays.
func TestWithoutAsks_CountsWhatTrustWouldShow(t *testing.T) {
	t.Parallel()
	at := func(file string, line, column int) settings.FileDiagnostic {
		d := settings.FileDiagnostic{File: file}
		d.Line, d.Column = line, column
		return d
	}
	const file = "/p/.zed/settings.json"
	p := compile.Project{File: file, Asks: []compile.Ask{{Line: 1, Column: 2}, {Line: 3, Column: 4}}}
	both := []settings.FileDiagnostic{at(file, 1, 2), at(file, 3, 4), at(file, 5, 6), at("/own.json", 1, 2)}
	if rest, count := withoutAsks(p, both); count != 2 || len(rest) != 2 || rest[0].Line != 5 || rest[1].Line != 1 {
		t.Errorf("%d, %+v", count, rest)
	}
	if rest, count := withoutAsks(p, both[1:]); count != 0 || len(rest) != 3 {
		t.Errorf("a single one: %d, %+v", count, rest)
	}
	p.Trusted = true
	if rest, count := withoutAsks(p, both); count != 0 || len(rest) != 4 {
		t.Errorf("trusted: %d, %+v", count, rest)
	}
}
