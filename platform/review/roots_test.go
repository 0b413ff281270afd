package review

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Every directory of the policy is compared and searched as the project is. Links
// from one to another lead to what the session writes anyway.
func TestFindings_InOtherGrants(t *testing.T) {
	t.Parallel()
	p, other := project{t, t.TempDir()}, project{t, t.TempDir()}
	elsewhere := project{t, t.TempDir()}
	other.write(".git/HEAD", "ref: refs/heads/main")
	other.write(".git/objects/x", "")
	other.write(".git/refs/x", "")
	other.write(".git/logs/x", "")
	other.write("build/mk", "")
	other.write("acts", "")
	other.link("build/mk", "Makefile")
	other.link(elsewhere.dir+"/script", "gradlew")
	elsewhere.write("script", "")
	time.Sleep(5 * fileTimeLag)

	state := Take(&policy.Policy{
		Project: p.dir, Rules: written(p.dir, other.dir, elsewhere.dir), GitDirs: []string{other.dir + "/.git"},
		Roots: []policy.Root{{Path: other.dir}, {Path: other.dir + "/acts", Acts: "it acts"}},
		Protected: []policy.Protected{
			{Path: other.dir + "/.envrc"}, {Path: other.dir + "/.mcp.json"}, {Path: other.dir + "/.git/config"},
		},
	})
	p.link(other.dir+"/build", "a")
	p.link(other.dir+"/.envrc", "b")
	p.link("/nonexistent/x", "c")
	other.link(p.dir, "d")
	other.link("config", ".git/logs/HEAD")
	other.write(".envrc", "x")
	other.write("deep/1/2/3/4/5/.mcp.json", "")
	other.write("acts", "x")
	other.write("build/mk", "x")
	other.write(".git/refs/heads/made", strings.Repeat("1", 40))
	elsewhere.write("script", "x")
	elsewhere.write(".envrc", "x") // it is no root

	var got []string
	for _, f := range state.Findings() {
		got = append(append(got, f.Path), f.Others...)
	}
	var want []string
	for of, names := range map[string]string{
		p.dir: "b c", other.dir: ".git/logs/HEAD .envrc deep/1/2/3/4/5/.mcp.json acts build/mk .git/refs/heads/made",
		elsewhere.dir: "script",
	} {
		for name := range strings.FieldsSeq(names) {
			want = append(want, of+"/"+name)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(slices.Compact(got), want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Of more repositories than are recorded it is said that one has changed.
func TestFindings_OfManyRepositories(t *testing.T) {
	t.Parallel()
	p := policy.Policy{Project: t.TempDir()}
	p.Rules = written(p.Project)
	var all []project
	for range maxRepositories + 3 {
		one := project{t, t.TempDir()}
		one.write(".git/HEAD", "ref: refs/heads/main")
		one.write(".git/objects/x", "")
		one.write(".git/refs/heads/main", strings.Repeat("1", 40))
		p.Rules, p.Roots = append(p.Rules, written(one.dir)...), append(p.Roots, policy.Root{Path: one.dir})
		all = append(all, one)
	}
	time.Sleep(5 * fileTimeLag)
	for _, changed := range []project{all[0], all[len(all)-1]} {
		state := Take(&p)
		if list := state.Findings(); len(list) > 0 {
			t.Fatalf("control: nothing has changed: %+v", list)
		}
		state = Take(&p)
		changed.write(".git/refs/heads/made", strings.Repeat("2", 40))
		list := state.Findings()
		named := func(f Finding) bool { return policy.Contains(changed.dir+"/.git", f.Path) }
		if len(list) == 0 || !slices.ContainsFunc(list, named) {
			t.Errorf("%d of %d: %+v", slices.Index(all, changed)+1, len(all), list)
		}
	}
}

// A project that sessions cannot write, such as /, is not searched. What is in the
// grants below it is found as elsewhere.
func TestFindings_BelowAProjectThatIsReadOnly(t *testing.T) {
	t.Parallel()
	above := project{t, t.TempDir()}
	for _, name := range []string{".vscode/tasks.json", "sub/Makefile", "g/.vscode/tasks.json", "g/Makefile"} {
		above.write(name, "")
	}
	granted := filepath.Join(above.dir, "g")
	state := Take(&policy.Policy{
		Project: above.dir, Rules: written(granted), Roots: []policy.Root{{Path: granted}},
		Protected: []policy.Protected{{Path: above.dir + "/.vscode"}, {Path: granted + "/.vscode"}},
	})
	for _, name := range []string{"sub/Makefile", "g/.vscode/tasks.json", "g/sub/.vscode/tasks.json", "g/Makefile"} {
		above.write(name, "changed")
	}
	var found []string
	for _, f := range state.Findings() {
		found = append(found, strings.TrimPrefix(f.Path, above.dir+"/"))
	}
	if want := []string{"g/.vscode/tasks.json", "g/sub/.vscode", "g/Makefile"}; !slices.Equal(found, want) {
		t.Errorf("%q, want %q", found, want)
	}
}

// Each root has a share of the time, whatever those before it use.
func TestShares_AreLeftToEach(t *testing.T) {
	t.Parallel()
	s := shares{left: 300 * time.Millisecond, of: 3}
	for i, step := range []struct{ want, used time.Duration }{{100, 110}, {95, 0}, {190, 500}, {0, 0}} {
		if got := s.next(); got != step.want*time.Millisecond {
			t.Errorf("step %d: %s, want %d ms", i, got, step.want)
		}
		s.spend(step.used * time.Millisecond)
	}
}

// What an editor outside changes in its own directory is not the session's work,
// if the session could change nothing there.
func TestFindings_LeaveOutWhatOthersChange(t *testing.T) {
	t.Parallel()
	for _, prevented := range []bool{false, true} {
		dir := t.TempDir()
		editor := filepath.Join(dir, ".config/editor")
		other := filepath.Join(dir, ".config/other")
		for _, path := range []string{editor, other} {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		state := Take(&policy.Policy{Project: dir, Protected: []policy.Protected{
			{Path: editor, Busy: true}, {Path: other},
		}})
		for _, path := range []string{editor, other} {
			if err := os.WriteFile(filepath.Join(path, "state"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if prevented {
			state.Prevented()
		}
		var found []string
		for _, f := range state.Findings() {
			found = append(found, strings.TrimPrefix(f.Path, dir+"/.config/"))
		}
		want := []string{"editor/state", "other/state"}
		if prevented {
			want = want[1:]
		}
		if !slices.Equal(found, want) {
			t.Errorf("prevented %t: %q, want %q", prevented, found, want)
		}
	}
}

// What a grant names below a protected directory is no part of that: it is
// reviewed by itself if programs act on it, and not at all if not.
func TestFindings_WhatAGrantNamesBelowAProtectedDirectory(t *testing.T) {
	t.Parallel()
	for _, acts := range []string{"", "it acts"} {
		for _, busy := range []bool{false, true} {
			dir := project{t, t.TempDir()}
			dir.write("agent/open/old", "")
			dir.write("agent/settings", "")
			around, open := filepath.Join(dir.dir, "agent"), filepath.Join(dir.dir, "agent/open")
			p := &policy.Policy{
				Project: dir.dir, Reopened: []string{open}, Protected: []policy.Protected{{Path: around, Busy: busy}},
				Rules: written(dir.dir, open),
			}
			if acts != "" {
				p.Roots = []policy.Root{{Path: open, Acts: acts}}
			}
			state := Take(p)
			for i := range maxFiles + 1 {
				dir.write(fmt.Sprintf("agent/open/%d", i), "")
			}
			dir.write("agent/settings", "changed")
			if busy {
				state.Prevented()
			}
			var found []string
			for _, f := range state.Findings() {
				found = append(found, strings.TrimPrefix(f.Path, around+"/"))
			}
			if got := slices.Contains(found, "settings"); got == busy {
				t.Errorf("busy %t: %q", busy, found)
			}
			within := slices.ContainsFunc(found, func(path string) bool { return strings.HasPrefix(path, "open") })
			if within != (acts != "") || slices.Contains(found, around) {
				t.Errorf("%q, busy %t: %q", acts, busy, found)
			}
		}
	}
}
