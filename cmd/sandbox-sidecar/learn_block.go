//go:build unix

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
)

// block finds the settings for all needs, each only if the settings so far do
// not grant it: first entries that are not paths, as a toolchain makes many
// paths needless; then the paths, widest first. notes are the needs that no
// setting grants.
func (l *learner) block() (text []byte, notes []string, err error) {
	store, snapshot, err := l.open()
	if err != nil {
		return nil, nil, err
	}
	secrets := snapshot.Secrets()
	needs := fold(l.needs, func(dir need) bool {
		if secrets(dir.target) != "" {
			return false
		}
		s, err := explain.Suggest(snapshot, l.kind, dir.access, dir.target, "")
		return err == nil && (s.Key != "" || s.Allowed)
	})
	store.Close()
	for _, turn := range []turn{entries, paths} {
		for _, n := range needs {
			note, err := l.add(n, turn)
			if err != nil {
				return nil, nil, err
			}
			if note != "" && turn == paths && !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	text, err = l.text()
	return text, notes, err
}

// turn is what add adds.
type turn int

const (
	entries turn = iota // of lists that do not hold paths
	paths
)

// turnOf is the turn in which a setting is added.
func turnOf(s explain.Suggestion) turn {
	if strings.HasPrefix(s.Setting(), "additional_") {
		return paths
	}
	return entries
}

// add adds the setting for one need, if it is its turn. note says why no setting
// can be added.
func (l *learner) add(n need, now turn) (note string, err error) {
	if n.refused != "" {
		return n.refused, nil
	}
	store, snapshot, err := l.open()
	if err != nil {
		return "", err
	}
	defer store.Close()
	s, err := explain.Suggest(snapshot, l.kind, n.access, n.target, n.program)
	if err != nil {
		return fmt.Sprintf("%s %s: %v", n.access, quoted(n.target), err), nil
	}
	switch {
	case s.Allowed:
		return "", nil
	case s.Key == "" || !s.Entry():
		return fmt.Sprintf("%s %s: %s", n.access, quoted(n.target), s.Hint), nil
	case turnOf(s) != now:
		return "", nil
	}
	if care, is := strings.CutPrefix(s.Hint, "careful: "); is {
		l.careful = append(l.careful, fmt.Sprintf("%s %s: %s", n.access, quoted(n.target), care))
	}
	// The entry is added to the whole list, as the top layer replaces the layers
	// below.
	merged := snapshot.MergedFor(l.kind)
	l.set(s.Key, append(merged.List(s.Setting()), s.Value))
	return "", nil
}

// text is a settings file with what is learned so far.
func (l *learner) text() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(map[string]any{"terminal": map[string]any{"sandbox": l.values}})
	return display.JSON(b.Bytes()), err
}

// enoughToFold is how many files of one directory are replaced by the directory.
const enoughToFold = 4

// fold replaces many files by their directory if a setting may grant that, and
// sorts the widest first.
func fold(needs []need, grantable func(dir need) bool) []need {
	for {
		in := map[need][]need{}
		for _, n := range needs {
			if foldable(n) {
				dir := need{access: n.access, target: filepath.Dir(n.target)}
				if !slices.Contains(in[dir], n) {
					in[dir] = append(in[dir], n)
				}
			}
		}
		folded := false
		for dir, entries := range in {
			if len(entries) >= enoughToFold && strings.Count(dir.target, "/") > 1 && grantable(dir) {
				folded = true
				needs = append(slices.DeleteFunc(needs, func(n need) bool { return slices.Contains(entries, n) }), dir)
			}
		}
		needs = widest(needs)
		if !folded {
			return needs
		}
	}
}

func foldable(n need) bool {
	return strings.HasPrefix(n.target, "/") && (n.access == "read" || n.access == "write" || n.access == "execute")
}

// widest drops what lies below another entry with the same access. It sorts
// writes before executes before reads, as each includes the next.
func widest(needs []need) []need {
	rank := map[string]int{"write": 1, "execute": 2, "read": 3}
	slices.SortFunc(needs, func(a, b need) int {
		return cmp.Or(cmp.Compare(rank[a.access], rank[b.access]), strings.Compare(a.access, b.access),
			cmp.Compare(len(a.target), len(b.target)),
			strings.Compare(a.target, b.target))
	})
	kept := []need{}
	for _, n := range slices.Compact(needs) {
		if !foldable(n) || !slices.ContainsFunc(kept, func(k need) bool {
			return k.access == n.access && policy.Contains(k.target, n.target)
		}) {
			kept = append(kept, n)
		}
	}
	return kept
}
