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

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// victimScene is a scene whose victim lies in the project.
func victimScene(t testing.TB) (s *scene, victim string) {
	t.Helper()
	s = newScene(t)
	victim = s.ProjectPath("victim")
	harness.Victim(t, "tests/victim", victim)
	return s, victim
}

// changeCalls lists the calls of the victim by name. makes says that a call
// needs no file.
func changeCalls(t testing.TB, victim string) (makes map[string]bool) {
	t.Helper()
	out, err := exec.Command(victim, "change-calls").Output()
	if err != nil {
		t.Fatal(err)
	}
	makes = map[string]bool{}
	for line := range strings.Lines(string(out)) {
		kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		makes[name] = kind == "makes"
	}
	if len(makes) < 30 {
		t.Fatalf("the victim knows few calls: %s", out)
	}
	return makes
}

// change runs the victim to its end, and returns what it printed, and the paths
// of the review.
func (s *scene) change(e *editor, victim string, args ...string) (output string, review []string) {
	s.T.Helper()
	session, status := e.Run(protocol.SpawnParams{Command: victim, Args: args})
	end := session.Close(0)
	if status != 0 {
		s.T.Errorf("%q: status %d: %s", args, status, session.Output())
	}
	for _, finding := range end.Review {
		review = append(append(review, finding.Path), finding.Others...)
	}
	return session.Output(), review
}

// A session that makes only one call that changes an acting file in a
// subdirectory is searched, whichever call that is and whoever watches.
func TestTheReviewFindsWhatEachCallChanges(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	watched := map[string]string{
		"default": harness.Defaults(nil),
		"ask":     harness.Defaults(harness.Sandbox{"on_denied": "ask"}),
		"ignore":  harness.Defaults(harness.Sandbox{"on_denied": "ignore"}),
		"offline": harness.Defaults(harness.Sandbox{"allow_network": false}),
	}
	for i, name := range slices.Sorted(maps.Keys(watched)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, victim := victimScene(t)
			makes := changeCalls(t, victim)
			for call, makes := range makes {
				dir := s.ProjectPath(filepath.Join("calls", call))
				harness.Write(t, filepath.Join(dir, "other"), "other")
				if makes {
					continue
				}
				file := filepath.Join(dir, "Makefile")
				harness.Write(t, file, "all:\n")
				if strings.Contains(call, "removexattr") {
					if err := unix.Setxattr(file, "user.sidecar", []byte("x"), 0); err != nil {
						t.Fatal(err)
					}
				}
			}
			e := s.start(watched[name], harness.Machine{})
			for j, call := range slices.Sorted(maps.Keys(makes)) {
				if !harness.Turn(t, i+j, len(watched)) {
					continue
				}
				relative := filepath.Join("calls", call, "Makefile")
				before := changed(s.ProjectPath(relative))
				output, review := s.change(e, victim, "change", call, s.ProjectPath(filepath.Dir(relative)))
				if changed(s.ProjectPath(relative)) == before {
					if !strings.Contains(output, "unsupported") {
						t.Errorf("%s changes nothing: %s", call, output)
					}
					continue // this kernel, or this file system, has no such call
				}
				// A search that a busy machine has stopped says so of the project.
				if !slices.Contains(review, s.ProjectPath(relative)) && !slices.Contains(review, s.Project) {
					t.Errorf("%s: the review has %q", call, review)
				}
			}
		})
	}
}

// changed is the time of a file's last change.
func changed(path string) unix.Timespec {
	var stat unix.Stat_t
	_ = unix.Lstat(path, &stat)
	return stat.Ctim
}

// A session that made no such call is not searched: what a program outside
// changes meanwhile, in a subdirectory, is not in its review. After one such
// call, of any file, it is.
func TestASessionThatChangedNothingIsNotSearched(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for name, settings := range map[string]string{
		"default": harness.Defaults(nil),
		"ask":     harness.Defaults(harness.Sandbox{"on_denied": "ask"}),
		"offline": harness.Defaults(harness.Sandbox{"allow_network": false}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, victim := victimScene(t)
			makefile := s.ProjectPath("sub/Makefile")
			harness.Write(t, makefile, "all:\n")
			harness.Write(t, s.ProjectPath("own/Makefile"), "all:\n")
			e := s.start(settings, harness.Machine{})
			if p := e.Hello.Capabilities.Enforcement["denials"]; !strings.Contains(p.Mechanism, "seccomp") {
				harness.Skip(t, "user_notification", p.Detail)
			}
			hold := func(args ...string) []string {
				session := e.Spawn(protocol.SpawnParams{Command: victim, Args: append(args, "hold")})
				session.Await("ready")
				harness.Write(t, makefile, "all: changed\n")
				session.Type("\n")
				session.Exit()
				return s.review(session.Close(0))
			}
			if review := hold("read", makefile, "then"); len(review) > 0 {
				t.Errorf("after a session that only read: %q", review)
			}
			if review := hold("write", "/dev/null", "x", "then"); len(review) > 0 {
				t.Errorf("after a write to /dev/null: %q", review)
			}
			if review := hold("change", "fchmodat", s.ProjectPath("own"), "then"); len(review) != 1 {
				t.Errorf("after a change: %q", review)
			}
			if review := hold("write", s.ProjectPath("notes"), "x", "then"); len(review) != 1 {
				t.Errorf("after a write: %q", review)
			}
		})
	}
}

// A descriptor that exec was given asks nobody. So a session with one that can
// write is searched.
func TestWhatAnInheritedDescriptorWritesIsFound(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s, victim := victimScene(t)
	makefile := s.ProjectPath("sub/Makefile")
	harness.Write(t, makefile, "all:\n")
	harness.Write(t, s.UserSettings(), harness.Defaults(nil))
	file, err := os.OpenFile(makefile, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, give := range map[string]func(*exec.Cmd) []string{
		"stdout": func(c *exec.Cmd) []string {
			c.Stdout = file
			return []string{victim, "write-fd", "1", "x"}
		},
		"descriptor 3": func(c *exec.Cmd) []string {
			c.ExtraFiles = []*os.File{file}
			return []string{victim, "write-fd", "3", "x"}
		},
	} {
		command := exec.Command(harness.Binary(t), "exec", "--")
		command.Dir, command.Env = s.Project, harness.Environ(s.World)
		var printed strings.Builder
		command.Stderr = &printed
		command.Args = append(command.Args, give(command)...)
		before := changed(makefile)
		if err := command.Run(); err != nil {
			t.Errorf("%s: %v: %s", name, err, printed.String())
		}
		if changed(makefile) == before {
			t.Errorf("%s: nothing was written", name)
		}
		if text := harness.Unfold(printed.String()); !strings.Contains(text, `sub/Makefile" was changed`) {
			t.Errorf("%s: exec prints %q", name, text)
		}
	}
}
