//go:build unix

package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSettingsHelp_HasATagForEachKeyAndFitsItsWidth(t *testing.T) {
	t.Parallel()
	p, err := readSettings("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := settingsHelp(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.allFields(p.structNamed(settingsRoot)) {
		if tag := "*sandbox-sidecar-setting-" + f.Name + "*"; strings.Count(string(text), tag) != 1 {
			t.Errorf("the tag %s occurs %d times", tag, strings.Count(string(text), tag))
		}
	}
	for _, line := range strings.Split(string(text), "\n") {
		// A path or a list of names without a space cannot be broken.
		if utf8.RuneCountInString(line) > helpWidth && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
}
