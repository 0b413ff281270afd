//go:build unix

package main

import (
	"os"
	"slices"
	"testing"
)

func TestNewLogger(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		level, format string
		ok            bool
	}{
		{"debug", "text", true},
		{"INFO", "json", true},
		{"warn", "text", true},
		{"error", "json", true},
		{"", "text", false},
		{"info+1", "text", false},
		{"info-1", "text", false},
		{"info", "xml", false},
		{"info", "", false},
	} {
		logger, err := newLogger(test.level, test.format)
		if (err == nil) != test.ok || (logger != nil) != test.ok {
			t.Errorf("%s %s: %v", test.level, test.format, err)
		}
	}
}

func TestGuarded_HoldsThisProgram(t *testing.T) {
	t.Parallel()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(guarded(), func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && os.SameFile(info, self)
	}) {
		t.Errorf("guarded paths are %q", guarded())
	}
}
