//go:build linux

package protected

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// linksOut are lines of a session that lead something in a repository to the
// directory $V, and the command of git outside that writes through it.
var linksOut = map[string][2]string{
	"the index":            {`rm -f .git/index; ln -s "$V/index" .git/index`, "git add file"},
	"the index, by rename": {`ln -s "$V/index" l; mv -f l .git/index`, "git add file"},
	"the index, by a way": {
		`ln -s .git way; rm -f way/index; ln -s "$V/index" way/index`, "git add file",
	},
	"the index of a worktree": {
		`git worktree add -q tree -b tree; rm .git/worktrees/tree/index; ln -s "$V/index" .git/worktrees/tree/index`,
		"git -C tree add file",
	},
	"packs": {`rm -rf .git/objects/pack; ln -s "$V" .git/objects/pack`, "git repack -adq"},
	"packs, by rename": {
		`rm -rf .git/objects/pack; ln -s "$V" l; mv -T l .git/objects/pack`, "git repack -adq",
	},
	"packs, moved away": {
		`mv .git/objects/pack .git/objects/old; ln -s "$V" .git/objects/pack`, "git repack -adq",
	},
	"a directory of objects": {
		`rm -rf .git/objects/info; ln -s "$V" .git/objects/info`, "git repack -adq && git update-server-info",
	},
}

// git outside writes its index and its packs through no link that a session
// makes. Its commands work afterwards.
func TestGitWritesNoIndexAndNoPacksElsewhere(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	begin := func(s *scene, name string) (line string) {
		s.repository(s.Project)
		harness.MakeDir(t, s.OutsidePath("victim"))
		return "V=" + harness.Quote(s.OutsidePath("victim")) + "\n" + linksOut[name][0]
	}
	// gitOutside runs the command, and returns what it has written there.
	gitOutside := func(t *testing.T, s *scene, command string) (elsewhere []string) {
		t.Helper()
		outside := exec.Command("/bin/sh", "-c", command)
		outside.Dir, outside.Env = s.Project, harness.Environ(s.World)
		if out, err := outside.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", command, err, out)
		}
		entries, err := os.ReadDir(s.OutsidePath("victim"))
		harness.Must(t, err)
		for _, entry := range entries {
			elsewhere = append(elsewhere, entry.Name())
		}
		return elsewhere
	}
	controls, printed := withoutSandbox(t, maps.Keys(linksOut), begin)
	confined := share(t, harness.Defaults(nil))
	for name, way := range linksOut {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(gitOutside(t, controls[name], way[1])) == 0 {
				t.Fatalf("control: without a sandbox git writes nothing there: %s", printed)
			}
			s, e := confined.in(t)
			reply, output, _, _ := e.run(begin(s, name))
			if elsewhere := gitOutside(t, s, way[1]); len(elsewhere) > 0 {
				harness.Breach(t, "git outside has written %q: %s", elsewhere, output)
			}
			harness.Eventually(t, "it is reported", func() bool {
				return slices.ContainsFunc(e.denials.Of(reply.SessionID), func(d protocol.DeniedParams) bool {
					return strings.Contains(d.Message, ": git outside would ")
				})
			})
		})
	}
}

// Links that were in a repository before a session open nothing of what they lead
// to, and lead nowhere else afterwards.
func TestLinksThatWereInARepositoryOpenNothing(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	const attack = `echo evil >>.git/index; echo evil >.git/objects/pack/evil; cat .git/index >copy
git add new; git commit -q -a -m evil; ln -sfn "$PWD/other" .git/index; ln -sfn "$PWD" .git/objects/pack
ln -s "$PWD" l; mv -fT l .git/objects/pack`
	for _, sandboxed := range []bool{false, true} {
		s := newScene(t)
		s.repository(s.Project)
		harness.Write(t, s.ProjectPath("new"), "new\n")
		elsewhere := map[string]string{".git/index": s.OutsidePath("index"), ".git/objects/pack": s.OutsidePath("pack")}
		for name, target := range elsewhere {
			harness.Must(t, os.Rename(s.ProjectPath(name), target))
			harness.Must(t, os.Symlink(target, s.ProjectPath(name)))
		}
		index := harness.Read(t, s.OutsidePath("index"))
		settings := harness.Off()
		if sandboxed {
			settings = harness.Defaults(nil)
		}
		e := s.start(settings, harness.Machine{})
		_, output, _, _ := e.run(attack)
		_, planted := os.Lstat(s.OutsidePath("pack/evil"))
		harm := map[string]bool{
			"the index is changed": harness.Read(t, s.OutsidePath("index")) != index,
			"a pack is planted":    planted == nil,
			"the index is read":    strings.HasPrefix(harness.Read(t, s.ProjectPath("copy")), "DIRC"),
		}
		for name, target := range elsewhere {
			to, err := os.Readlink(s.ProjectPath(name))
			harm[name+" leads elsewhere"] = err == nil && to != target
		}
		for what, happens := range harm {
			switch {
			case sandboxed && happens:
				harness.Breach(t, "%s: %s", what, output)
			case !sandboxed && !happens:
				t.Errorf("control: not so: %s: %s", what, output)
			}
		}
		if !sandboxed {
			continue
		}
		harness.Eventually(t, "what the links lead to is reported", func() bool {
			return slices.ContainsFunc(e.denials.All(), func(d protocol.DeniedParams) bool {
				return within(s.OutsidePath("pack"), d.Target) || d.Target == s.OutsidePath("index")
			})
		})
		// The control: git works with the grant of what the links lead to.
		e = s.start(harness.Defaults(harness.Sandbox{
			"additional_read_write_paths": []string{filepath.Dir(s.OutsidePath("index"))},
		}), harness.Machine{})
		if _, output, status, _ := e.run("git add new && git commit -q -m new && git repack -adq"); status != 0 {
			t.Errorf("control: with a grant: status %d: %s", status, output)
		}
	}
}
