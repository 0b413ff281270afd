package doors

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// asking are ways to ask about one access, without a session.
var asking = []struct {
	name string
	// explains: it may name the key, behind the care.
	explains bool
	ask      func(s *scenery, list []entry) (said []string)
}{
	{"explain", true, func(s *scenery, list []entry) []string {
		return s.each(list, func(e entry) []string { return []string{"explain", e.access, e.target} })
	}},
	{"explain --json", true, func(s *scenery, list []entry) []string {
		return s.each(list, func(e entry) []string { return []string{"explain", "--json", e.access, e.target} })
	}},
	{"allow PATH", false, func(s *scenery, list []entry) []string {
		flags := map[string][]string{"write": {"--write"}, "execute": {"--execute"}}
		return s.each(list, func(e entry) []string {
			return slices.Concat([]string{"allow", "--yes"}, flags[e.access], []string{e.target})
		})
	}},
	{"mcp explain", false, func(s *scenery, list []entry) []string {
		var each []map[string]any
		for _, e := range list {
			each = append(each, map[string]any{"access": e.access, "target": e.target})
		}
		return s.tools("explain", each...)
	}},
}

// each runs a subcommand for each access.
func (s *scenery) each(list []entry, args func(entry) []string) (said []string) {
	for _, e := range list {
		words := args(e)
		said = append(said, s.says(words[0], words[1:]...))
	}
	return said
}

// tries are ways in which a session tries some accesses.
var tries = []struct {
	name string
	// most bounds what it lists.
	most int
	// silent: it adds a set without a word about the access.
	silent bool
	try    func(s *scenery, line string) (said string)
}{
	{name: "exec", most: 12, try: func(s *scenery, line string) string {
		return s.says("exec", "--", "sh", "-c", line)
	}},
	{name: "allow", most: 20, try: func(s *scenery, line string) string {
		s.says("exec", "--", "sh", "-c", line)
		return s.says("allow")
	}},
	{name: "learn", most: 20, silent: true, try: func(s *scenery, line string) string {
		return s.says("learn", "--", "sh", "-c", line)
	}},
	{name: "acp", most: 20, try: func(s *scenery, line string) string {
		return s.says("acp", "--", "sh", "-c", line)
	}},
	{name: "mcp run", most: 20, try: func(s *scenery, line string) string {
		return s.tool("run", map[string]any{"command": line, "cwd": s.cwd})
	}},
}

// TestDoors_NoneSuggestsAPlaceOfTheTable asks in each way about a row of each
// kind of the table of places, and about a harmless file. Of ways to ask about one
// access, each turn has two.
func TestDoors_NoneSuggestsAPlaceOfTheTable(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	rows := sampled(t)
	for i, way := range asking {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s := everyKind(t, rows)
			var entries []entry
			for j, e := range s.entries {
				if harness.Turn(t, i+j, 2) {
					entries = append(entries, e)
				}
			}
			said := way.ask(s, append(slices.Clone(entries), s.control))
			for i, e := range entries {
				e.check(t, said[i], way.explains)
			}
			for _, path := range paths(harness.Read(t, s.UserSettings())) {
				if path != s.control.target {
					harness.Breach(t, "written into the settings: %s", path)
				}
			}
			if last := harness.Unfold(said[len(said)-1]); !steps.MatchString(last) {
				t.Errorf("control: nothing is suggested:\n%s", last)
			}
		})
	}
	for _, way := range tries {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s := everyKind(t, rows)
			const spare = 2 // for the control, and for a refusal of the shell's
			for few := range slices.Chunk(s.tried(), way.most-spare) {
				all := append(slices.Clone(few), s.control)
				s.judge(harness.Unfold(way.try(s, lineOf(all...))), all, way.silent)
			}
		})
	}
}

// judge checks what was said of some accesses, the last of which is the control.
func (s *scenery) judge(said string, all []entry, silent bool) {
	s.t.Helper()
	suggested := paths(said)
	for _, e := range all[:len(all)-1] {
		for _, path := range suggested {
			if path == "/" || path == e.target || strings.HasPrefix(e.target, path+"/") {
				harness.Breach(s.t, "%s is suggested by %s:\n%s", e, path, said)
			}
		}
		switch about := behind(said, e, all); {
		case about != "":
			e.checkCare(s.t, about)
		case silent && e.isSet():
			e.checkCare(s.t, said)
		default:
			s.t.Errorf("%s: nothing is said of it:\n%s", e, said)
		}
	}
	if !slices.Contains(suggested, s.control.target) {
		s.t.Errorf("control: %s is not suggested:\n%s", s.control.target, said)
	}
}

// behind is what a text says of an access, up to where it names the next one; "" if
// it does not name it.
func behind(said string, e entry, all []entry) string {
	_, rest, found := strings.Cut(said, e.mark())
	if !found {
		return ""
	}
	for _, other := range all {
		rest, _, _ = strings.Cut(rest, other.mark())
	}
	return e.mark() + rest
}

var (
	// added is a step: an entry for a list of paths.
	added = regexp.MustCompile(`add \\?"([^"\\]+)\\?" to \\?"additional_`)
	// listed is such a list in settings, and quoted is an entry of it.
	listed = regexp.MustCompile(`"additional_\w+": *\[([^\]]*)\]`)
	quoted = regexp.MustCompile(`"([^"]+)"`)
)

// paths are those that a text suggests to grant, or that settings grant.
func paths(text string) (list []string) {
	for _, step := range added.FindAllStringSubmatch(text, -1) {
		list = append(list, step[1])
	}
	for _, block := range listed.FindAllStringSubmatch(text, -1) {
		for _, path := range quoted.FindAllStringSubmatch(block[1], -1) {
			list = append(list, path[1])
		}
	}
	return list
}

// TestDoors_NoDenialAndNoQuestionSuggestsAPlaceOfTheTable is the same for editors:
// what "Allow" takes up, and what on_denied "ask" asks.
func TestDoors_NoDenialAndNoQuestionSuggestsAPlaceOfTheTable(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	rows := sampled(t)
	for name, ask := range map[string]bool{"denials": false, "questions": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := everyKind(t, rows)
			// Its directory is the home directory.
			beside := entry{access: "read", target: s.HomePath("beside")}
			harness.Write(t, beside.target, "content\n")
			denials, questions := s.observed(append(s.tried(), beside, s.control), ask)
			for _, e := range s.tried() {
				d := denials[e.mark()]
				if !ofSet(e, d.Suggestion) {
					harness.Breach(t, "%s is suggested: %+v", e, *d.Suggestion)
				}
				text, err := json.Marshal(d)
				harness.Must(t, err)
				e.checkCare(t, strings.ReplaceAll(string(text), `\"`, `"`))
				q, asked := questions[e.mark()]
				if asked && (!ofSet(e, q.Suggestion) || !e.isSet() || q.Directory != "") {
					harness.Breach(t, "%s is a question: %+v", e, q)
				}
			}
			if d := denials[s.control.mark()]; d.Suggestion == nil {
				t.Errorf("control: nothing is suggested: %+v", d)
			}
			if !ask {
				return
			}
			if q, asked := questions[s.control.mark()]; !asked || q.Directory != s.Outside {
				t.Errorf("control: asked: %t, %+v", asked, q)
			}
			switch q, asked := questions[beside.mark()]; {
			case !asked:
				t.Errorf("control: %s is not a question", beside.mark())
			case q.Directory != "":
				harness.Breach(t, "the directory of all places is offered: %+v", q)
			}
		})
	}
}

// ofSet reports whether a suggestion is none, or the set of a row.
func ofSet(e entry, s *protocol.Suggestion) bool {
	return s == nil || e.isSet() && s.Setting == "toolchains" && string(s.Value) == fmt.Sprintf("%q", e.row.Set)
}

// observed has an editor's tool try some accesses. It returns the report about each,
// and the questions, which are answered with no.
func (s *scenery) observed(list []entry, ask bool) (
	denials map[string]protocol.DeniedParams, questions map[string]protocol.RequestAccessParams,
) {
	s.t.Helper()
	block := harness.Sandbox{}
	if ask {
		block["on_denied"] = "ask"
	}
	e := harness.Start(s.t, s.World, harness.Options{
		Settings:   harness.Defaults(block),
		Initialize: func(p *protocol.InitializeParams) { p.Capabilities.Approvals = ask },
	})
	recorded := harness.RecordDenials(e)
	var mu sync.Mutex // guards asked
	asked := map[string]protocol.RequestAccessParams{}
	client.OnRequest(
		e.Client, protocol.RequestAccess, func(p protocol.RequestAccessParams) protocol.RequestAccessResult {
			mu.Lock()
			defer mu.Unlock()
			asked[entry{access: p.Access, target: p.Target}.mark()] = p
			return protocol.RequestAccessResult{Decision: protocol.DecisionDeny}
		})
	session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: lineOf(list...)})
	session.Exit()
	for _, one := range list {
		harness.Eventually(s.t, "a report about "+one.mark(), func() bool {
			denials = map[string]protocol.DeniedParams{}
			for _, d := range recorded.Of(session.SessionID) {
				denials[entry{access: d.Access, target: d.Target}.mark()] = d
			}
			_, found := denials[one.mark()]
			return found
		})
	}
	mu.Lock()
	defer mu.Unlock()
	return denials, asked
}
