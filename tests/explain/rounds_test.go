//go:build linux

package explain

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// round is a session of a front, in which acts are tried that were explained.
type round struct {
	*scene
	t       *testing.T
	front   front
	offline bool
	acts    []act
	editor  *harness.Editor // nil for an agent
	answers []protocol.PolicyExplainResult
}

// begin writes the settings, and starts who is asked about them.
func (s *scene) begin(t *testing.T, f front, offline bool, settings string) *round {
	t.Helper()
	r := &round{scene: s, t: t, front: f, offline: offline, acts: s.concrete(f, offline)}
	if f.agent {
		harness.Write(t, s.UserSettings(), settings)
		return r
	}
	r.editor = harness.Start(t, s.World, harness.Options{
		Settings: settings, Env: s.env, Wrap: func(command *exec.Cmd) {
			if f.confines {
				command.Args = append(command.Args, "--sandbox")
			}
		},
	})
	return r
}

// outcome is what was said about an act, and what came of it.
type outcome struct {
	act
	answer  protocol.PolicyExplainResult
	result  string // the victim's
	outside bool   // what it wrote is seen outside
}

// try has all acts explained, and then tried in one session. said is what else was
// printed.
func (r *round) try() (list []outcome, said string) {
	r.t.Helper()
	r.ask()
	args, sizes := []string{}, make([]int64, len(r.acts))
	for i, a := range r.acts {
		args, sizes[i] = append(args, a.made+" "+a.target), sizeOf(a.target)
	}
	output := r.front.run(r, args)
	var results []string
	for line := range strings.Lines(output) {
		if result, is := strings.CutPrefix(strings.TrimSpace(line), "result "); is {
			results = append(results, result)
		} else {
			said += line
		}
	}
	if len(results) != len(r.acts) || strings.Contains(output, "result misused") {
		r.t.Fatalf("%s: %d results for %d acts: %s", r.front.name, len(results), len(r.acts), output)
	}
	for i, a := range r.acts {
		o := outcome{act: a, answer: r.answers[i], result: results[i], outside: sizeOf(a.target) > sizes[i]}
		if a.made == "create" {
			o.outside = os.Remove(a.target) == nil
		}
		list = append(list, o)
	}
	return list, said
}

// sizeOf is the size of what is at a path outside; -1 if nothing is.
func sizeOf(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

// allowed is what the answer means for the act.
func (o outcome) allowed() bool {
	return o.answer.Allowed || o.made == "connect_own" && strings.Contains(o.answer.Reason, projectsOwn)
}

// apart reports whether the answer says that no program outside sees what is
// written.
func (o outcome) apart() bool { return strings.Contains(o.answer.Hint, "sessions see what") }

// part is the result of a session that reads a file without what is secret in it.
const part = "a part"

// difference is how the kernel contradicts the answer, which allows the act or not;
// "" if it does not.
func (o outcome) difference(allowed bool) string {
	hidden := strings.Contains(o.answer.Reason, "is hidden")
	if hidden && o.made == "read" && isDir(o.target) && os.Geteuid() == 0 {
		return "" // root may list the empty directory
	}
	want := "done"
	switch {
	case o.made == "connect" && strings.Contains(o.answer.Reason, "the session's own"):
		want = "ECONNREFUSED" // the server is outside, and none listens inside
	case o.made == "read" && strings.Contains(o.answer.Hint, "sessions do not see what"):
		want = "ENOENT"
	case o.made == "secret" && strings.Contains(o.answer.Reason, "read a part of"):
		want = part
	}
	happened := o.result == want || !allowed && o.result == part
	if allowed != happened {
		return fmt.Sprintf("%s: explain says %t (%s; %s), the kernel says %s", o.act, allowed, o.answer.Reason,
			o.answer.Hint, o.result)
	}
	wrote := o.result == "done" && (o.made == "create" || o.made == "append")
	if wrote && o.outside == o.apart() {
		return fmt.Sprintf("%s: seen outside: %t, although explain says %q", o.act, o.outside, o.answer.Hint)
	}
	return ""
}

// compared is how many acts were asked about, and how many of them were allowed.
type compared struct {
	asked, allowed int
	differences    []string
}

// compare asks about all acts under one policy, and tries them by one front. lie
// changes an answer, unless it is nil. Lies are about sessions without the network,
// which are asked about most.
func (s *scene) compare(t *testing.T, f front, lie func(a act, allowed bool) bool) compared {
	t.Helper()
	offline := lie != nil || s.random.IntN(3) > 0
	settings := s.settings(f, offline)
	tried, said := s.begin(t, f, offline, settings).try()
	found := compared{asked: len(tried)}
	for _, o := range tried {
		allowed := o.allowed()
		if lie != nil {
			allowed = lie(o.act, allowed)
		}
		if allowed {
			found.allowed++
		}
		difference := o.difference(allowed)
		if want, known := s.known(f, o.act); known && o.answer.Allowed != want {
			difference = fmt.Sprintf("%s: explain says %t (%s), which no setting asks for", o.act, o.answer.Allowed,
				o.answer.Reason)
		}
		if difference != "" {
			found.differences = append(found.differences,
				fmt.Sprintf("%s, %s\nsaid %s\nsettings %s", f.name, difference, said, settings))
		}
	}
	return found
}
