package main

import (
	"fmt"
	"slices"
	"strings"
)

// tale is a row of a story: a command, and what has to become of it.
type tale struct {
	name string
	// toolchains are what the settings grant; none with the default settings.
	toolchains []string
	// tty gives the command a terminal.
	tty             bool
	outside, inside string // ok or fails
	command         string
}

const (
	ok    = "ok"
	fails = "fails"
)

// readStory reads a table; testdata/story.txt has the format.
func readStory(text string) ([]tale, error) {
	var tales []tale
	names := map[string]bool{}
	for _, line := range tableLines(text) {
		cells := strings.SplitN(line, " | ", 5)
		if len(cells) != 5 {
			return nil, fmt.Errorf("%q has %d cells of 5", line, len(cells))
		}
		t := tale{name: cells[0], outside: cells[2], inside: cells[3], command: cells[4]}
		for setting := range strings.SplitSeq(cells[1], "+") {
			switch setting {
			case "default":
			case "tty":
				t.tty = true
			default:
				t.toolchains = append(t.toolchains, setting)
			}
		}
		for _, outcome := range []string{t.outside, t.inside} {
			if !slices.Contains([]string{ok, fails}, outcome) {
				return nil, fmt.Errorf("%s: the outcome %q is neither ok nor fails", t.name, outcome)
			}
		}
		if t.name == "" || names[t.name] {
			return nil, fmt.Errorf("the name %q is empty, or a second time", t.name)
		}
		names[t.name] = true
		tales = append(tales, t)
	}
	if len(tales) == 0 {
		return nil, fmt.Errorf("the table has no row")
	}
	return tales, nil
}
