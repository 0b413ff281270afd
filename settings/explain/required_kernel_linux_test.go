package explain

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A session does nothing that the organisation's requirement alone would not
// allow, by the kernel's answers: random defaults, requirements, users' and
// projects' settings, and random targets. SIDECAR_EXPLAIN_POLICIES makes it
// longer.
func TestRequired_HoldsByTheKernelsAnswers(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	policies, random := harness.Generated(t, 30, 5)
	var all boundAttempts
	var m *maze
	for i := range policies {
		if i%5 == 0 {
			m = newMaze(t, random)
			// A user's grant of a private file shows it, as no requirement hides it.
			m.share(t)
		}
		some := m.compareBound(t)
		all.asked, all.done, all.taken = all.asked+some.asked, all.done+some.done, all.taken+some.taken
	}
	t.Logf("%d policies: %+v", policies, all)
	if all.done == 0 || all.taken == 0 {
		t.Errorf("%+v: this compares nothing", all)
	}
}

// boundAttempts counts attempts: those that the kernel allowed, and those that
// only the requirement took away.
type boundAttempts struct{ asked, done, taken int }

// compareBound makes attempts under one random policy.
func (m *maze) compareBound(t *testing.T) boundAttempts {
	t.Helper()
	home := filepath.Join(m.root, "home")
	defaults, required, user, project := m.settings(t), m.settings(t), m.settings(t), m.settings(t)
	snapshot := func(states ...source.State) *compile.Snapshot {
		file := filepath.Join(home, "project/.zed/settings.json")
		state := settingstest.State(t, file, project)
		return &compile.Snapshot{Input: compile.Input{
			Host: resolve.Host{
				Platform: "linux", Home: home, Account: home, Root: os.Geteuid() == 0, Env: map[string]string{},
			},
			FS: resolve.OS, ProjectDir: filepath.Join(home, "project"), UserStates: states, ProjectState: &state,
		}}
	}
	own := settingstest.State(t, filepath.Join(home, ".config/settings.json"), user)
	bound := snapshot(settingstest.Managed(t, managed.File, defaults, required), own)
	free := snapshot(settingstest.Managed(t, managed.File, defaults, "{}"), own)
	alone := snapshot(settingstest.State(t, filepath.Join(home, ".config/settings.json"), required))
	alone.ProjectState = nil
	compiled := bound.Compile(document.KindTool)
	if compiled.Doubt != nil && compiled.Doubt.Refused {
		return boundAttempts{} // the project lies in a path that is hidden
	}
	says := func(s *compile.Snapshot, attempt Attempt, path string) bool {
		x, err := Why(s, document.KindTool, attempt, path)
		must(t, err)
		return x.Allowed
	}
	resolver := resolve.NewView(resolve.OS)
	var acts []platformtest.Act
	var mayAlone, mayFree []bool
	for range 60 {
		attempt, path := Attempts()[m.random.IntN(3)], m.pick()
		act, sensible := m.act(attempt, path, resolver)
		// A symlink's own name is not what the lists are about.
		end := resolver.Resolve(act.Path).Path
		if _, own := compiled.Policy.TemporaryAt(end); !sensible || own {
			continue // the session has something else there
		}
		acts = append(acts, act)
		mayAlone, mayFree = append(mayAlone, says(alone, attempt, end)), append(mayFree, says(free, attempt, end))
	}
	if len(acts) == 0 {
		return boundAttempts{}
	}
	results, _, _ := attemptAll(t, bound, acts)
	counts := boundAttempts{asked: len(acts)}
	for i, result := range results {
		listed := os.Geteuid() == 0 && acts[i].Verb == platformtest.List // root may list an empty directory
		switch {
		case result.OK() && !mayAlone[i] && !listed:
			harness.Breach(t, "%s is done\ndefaults %s\nrequired %s\nuser     %s\nproject  %s", acts[i], defaults, required,
				user, project)
		case result.OK():
			counts.done++
		case mayFree[i]:
			counts.taken++
		}
	}
	return counts
}
