//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/refusals"
)

const (
	// mostWords bounds the words of a command line that are checked.
	mostWords = 100
	// mostNamed bounds the paths that hints name.
	mostNamed = 2
)

// namedRefusals says which paths of a command line sessions may not read, if the
// command has failed and nothing was reported: reads by most programs are not, such
// as the list of "ls ~". That a program has tried to read them is likely; that it
// may not is certain.
func (s refusedSummary) namedRefusals(r ran, exit spawn.Exit, argv []string, dir string) []string {
	denials, missed := r.Denials()
	if exit.Code == 0 || !r.Outcome().Confined || len(denials)+missed > 0 || len(argv) == 0 {
		return nil
	}
	if s.snapshot.Compile(s.kind).Policy.OnDenied == policy.Ignore {
		return nil
	}
	var hints []string
	seen := map[string]bool{}
	for _, path := range pathsOf(argv[1:], dir) {
		if seen[path] || policy.Contains("/proc", path) || policy.Contains("/dev", path) {
			continue // sessions see others there
		}
		if fsguard.Access(path, unix.R_OK) != nil {
			continue // without the sandbox it could not be read either
		}
		seen[path] = true
		if hint := s.readingRefused(path); hint != "" {
			hints = append(hints, hint)
		}
		if len(hints) == mostNamed {
			break
		}
	}
	return hints
}

// readingRefused says that a path may not be read, and what to do; "" if it may.
func (s refusedSummary) readingRefused(path string) string {
	var denial spawn.Denial
	denial.Access, denial.Target, denial.Count = platform.RefusedRead, path, 1
	if tried, err := presentation.Suggest(s.snapshot, s.kind, denial); err != nil || tried.Allowed {
		return ""
	}
	o := offerFor(s.store, s.snapshot, wish{scope: settings.ScopeUser, kind: s.kind, denial: denial, line: s.line})
	text := fmt.Sprintf("the sandbox lets no session read %s", quoted(path))
	switch {
	case o.proposal != nil && s.byTarget(path):
		text += fmt.Sprintf("; to allow it: `sandbox-sidecar allow %s`", path)
	case o.proposal != nil:
		text += "; to allow it: " + o.suggestion.InstructionInFull()
	}
	if o.suggestion.Hint != "" {
		text += "; " + note(o.suggestion.Hint)
	}
	return text
}

// byTarget reports whether "allow" with a path or a host means these settings, and
// the text can be copied into a shell as it is.
func (s refusedSummary) byTarget(text string) bool {
	return !s.elsewhere && s.kind == settings.KindTerminal && s.line == (refusals.Under{}) && text != "" &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@%,:") == "" &&
		text[0] != '-'
}

// pathsOf are the real paths that the words of a command line may mean, also of one
// for a shell.
func pathsOf(args []string, dir string) []string {
	home, _ := os.UserHomeDir()
	var paths []string
	words := 0
	for _, arg := range args {
		for word := range strings.FieldsFuncSeq(arg, func(r rune) bool {
			return strings.ContainsRune(" \t\n;&|()<>='\"`$", r)
		}) {
			if words++; words > mostWords {
				return paths
			}
			if rest, is := strings.CutPrefix(word, "~"); is && home != "" && (rest == "" || rest[0] == '/') {
				word = home + rest
			}
			if strings.HasPrefix(word, "-") {
				continue
			}
			if !filepath.IsAbs(word) {
				word = filepath.Join(dir, word)
			}
			paths = append(paths, realPath(word))
		}
	}
	return paths
}
