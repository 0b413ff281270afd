package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// flake is a test that failed and then passed alone.
type flake struct {
	Part   string `json:"part"`
	Test   string `json:"test"` // its package and its name there
	Output string `json:"output"`
}

// again runs the failed tests of a part again, with nothing beside them. It
// returns those that passed, and why the run is red if another did not. A failure
// that is certain is the last to run.
func again(ctx context.Context, out io.Writer, r *ran) (flakes []flake, red string) {
	failed := r.failed()
	if len(failed) == 0 {
		return nil, ""
	}
	second := newResults(func(string) {})
	certain := ""
	for _, command := range r.again(failed) {
		fmt.Fprintf(out, "%s: once more, alone: %s\n", r.name, strings.Join(command, " "))
		alone := part{name: r.name, command: command, env: r.env, again: r.part.again, quiet: true}
		each := run(ctx, alone, func(why string) { certain = why }, func(string) {})
		if certain != "" {
			certain = r.name + ": " + certain + "\n" + each.all()
			break
		}
		second.merge(each.results)
	}
	for _, t := range failed {
		if second.passed(t) {
			flakes = append(flakes, flake{Part: r.name, Test: t.Package + " " + t.Name, Output: r.said(t)})
		} else {
			red = fmt.Sprintf("%s: %s %s failed, and did not run again\n%s", r.name, t.Package, t.Name, r.said(t))
		}
	}
	for _, t := range second.failed() {
		red = fmt.Sprintf("%s: %s %s fails alone\n%s", r.name, t.Package, t.Name, second.said(t))
	}
	if certain != "" {
		red = certain
	}
	return flakes, red
}
