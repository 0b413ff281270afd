//go:build linux

package attack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Writes next to a granted directory whose name is full of characters that end
// strings, rules and lines elsewhere. A path is bytes in a message, never part
// of a language: the grant holds for exactly that name.
func TestStrangeCharactersInAGrantAreOnlyCharacters(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		`qu"ote`, `back\slash`, "new\nline", `paren)(allow default`, `'; touch x; '`,
		"$(touch x)`touch x`", "tab\t blank ", "umlaut-ü-\u202e",
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			// A dollar sign at the start of a name would be a variable; this
			// one is not.
			attack{
				grants: func(s *scene) harness.Sandbox {
					return harness.Sandbox{"additional_read_write_paths": []string{s.OutsidePath(name)}}
				},
				prepare: func(s *scene) { harness.MakeDir(s.T, s.OutsidePath(name)) },
				actions: func(s *scene) []string {
					return []string{
						"write", s.OutsidePath(name + "/fine"), "x", "then", "write", s.OutsidePath("planted"), "x",
					}
				},
				harm: func(s *scene, _ string) bool {
					if !exists(s.OutsidePath(name + "/fine")) {
						s.T.Errorf("%q is granted and cannot be written", name)
					}
					return exists(s.OutsidePath("planted"))
				},
			}.mustFail(t)
		})
	}
}

// Grants misleading paths: with "..", with NUL, with another user's home,
// relative, empty. Each counts for nothing or for exactly what it leads to, and
// the user gets a warning.
func TestMisleadingGrantsDoNotCount(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for name, text := range map[string]func(s *scene) string{
		"NUL":        func(s *scene) string { return s.Outside + "\x00/x" },
		"other home": func(s *scene) string { return "~root" + s.Outside },
		"relative":   func(*scene) string { return "../outside" },
		"empty":      func(*scene) string { return "" },
		"proc":       func(s *scene) string { return "/proc/self/root" + s.Outside },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			secretOutside(s)
			e := s.Start(harness.Settings(harness.Sandbox{"additional_read_write_paths": []string{text(s)}}))
			result := s.attempt(e, "write", s.OutsidePath("secret"), "overwritten")
			if !result.refused(refusalOfChange(result)) || changed(s, "") {
				harness.Breach(t, "the entry counts: status %d\n%s", result.status, result.output)
			}
			if warnings := strings.Join(result.reply.Sandbox.Warnings, "\n"); !strings.Contains(warnings,
				"additional_read_write_paths") {
				t.Errorf("no warning names the setting: %q", warnings)
			}
			// Control: the plain path, in the same place, is granted.
			s = newScene(t)
			secretOutside(s)
			e = s.Start(harness.Settings(harness.Sandbox{"additional_read_write_paths": []string{s.Outside}}))
			if result := s.attempt(e, "write", s.OutsidePath("secret"), "overwritten"); !result.done() ||
				!changed(s, "") {
				t.Errorf("control: a plain grant must work: status %d\n%s", result.status, result.output)
			}
		})
	}
}

// Lets the policy grant a FIFO and a socket. Opening a FIFO for reading would
// wait for a writer for ever, so the rule is made without opening it.
func TestAFIFOAmongTheGrantsDoesNotHang(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	harness.Must(t, unix.Mkfifo(s.OutsidePath("fifo"), 0o600))
	secretOutside(s)
	e := s.Start(harness.Settings(harness.Sandbox{"additional_read_only_paths": []string{
		s.OutsidePath("fifo"),
		s.OutsidePath("secret"),
	}}))
	if result := s.attempt(e, "read", s.OutsidePath("secret")); !result.done() || !leaked(s, result.output) {
		t.Errorf("the grant beside the FIFO must hold: status %d\n%s", result.status, result.output)
	}
}

// Runs a copied program from a directory that is granted for reading only.
// Reading does not include executing. A copy in the project runs.
func TestAReadOnlyDirectoryIsNotExecutable(t *testing.T) {
	t.Parallel()
	attack{
		grants:  readOnlyOutside,
		prepare: func(s *scene) { secretOutside(s); s.CopyVictim(s.OutsidePath("program")) },
		actions: func(s *scene) []string {
			return []string{"exec", s.OutsidePath("program"), "read", s.OutsidePath("secret")}
		},
		refusal: "EACCES", harm: leaked,
	}.mustFail(t)
}

// Saves files as editors do: writes a new one and renames it over the old. In a
// granted directory that always works. A grant of a single file is a grant of
// that inode: if a process outside replaces the file, a running session loses
// it.
func TestAtomicSavesNeedAGrantOfTheDirectory(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.OutsidePath("dir/file"), "old")
	harness.Write(t, s.OutsidePath("single"), "old")
	e := s.Start(harness.Settings(harness.Sandbox{"additional_read_write_paths": []string{
		s.OutsidePath("dir"),
		s.OutsidePath("single"),
	}}))
	shell := e.Shell()
	ask := func(mark, path string) string {
		shell.Type("cat '" + path + "'; echo; echo " + mark + "''-end\n")
		shell.Await(mark + "-end")
		_, answer, _ := strings.Cut(shell.Output(), mark+"''-end\n")
		return answer
	}
	for _, path := range []string{s.OutsidePath("dir/file"), s.OutsidePath("single")} {
		if answer := ask("before-"+filepath.Base(path), path); !strings.Contains(answer, "old") {
			t.Fatalf("%s is granted and cannot be read:\n%s", path, answer)
		}
		harness.Write(t, s.OutsidePath("new"), "fresh")
		harness.Must(t, os.Rename(s.OutsidePath("new"), path))
	}
	if answer := ask("after-dir", s.OutsidePath("dir/file")); !strings.Contains(answer, "fresh") {
		t.Errorf("a file replaced in a granted directory cannot be read:\n%s", answer)
	}
	if answer := ask("after-single", s.OutsidePath("single")); strings.Contains(answer, "fresh") {
		t.Errorf("a file that replaced a singly granted one can be read, which is documented otherwise:\n%s", answer)
	}
	if result := s.attempt(e, "write", s.OutsidePath("dir/t"), "fresh", "then", "rename", s.OutsidePath("dir/t"),
		s.OutsidePath("dir/file")); !result.done() {
		t.Errorf("a save into a granted directory fails: status %d\n%s", result.status, result.output)
	}
	result := s.attempt(e, "write", s.ProjectPath("t"), "fresh", "then", "rename", s.ProjectPath("t"),
		s.OutsidePath("single"))
	refusal := "EACCES"
	if refusalOfChange(result) == "EROFS" {
		refusal = "EXDEV" // a single file that is granted is a mount
	}
	if !result.refused(refusal) {
		harness.Breach(t, "a file that is granted singly was replaced from inside: status %d\n%s", result.status, result.output)
	}
	if result := s.attempt(e, "read", s.OutsidePath("single")); !result.done() {
		t.Errorf("a new session must get the new file: status %d\n%s", result.status, result.output)
	}
}

// Opens directories as projects that hold much more than a project: the root,
// the home directory by its name and by a symlink, /tmp. The user asked for it,
// so it is granted, but the reply warns.
func TestDangerousProjectsAreAnnounced(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Must(t, os.Symlink(s.Home, s.OutsidePath("link")))
	// The editor names the settings: in the home directory that HOME says, a project
	// could have made them.
	e := harness.Start(t, s.World, harness.Options{Wrap: s.Wrap, Initialize: func(p *protocol.InitializeParams) {
		p.InitializationOptions = &protocol.InitializationOptions{UserSettingsPath: s.UserSettings()}
	}})
	warnings := func(project string) string {
		session := e.Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Command: "/bin/true", Args: []string{}, Cwd: project,
			ProjectDir: project,
		})
		session.Exit()
		return strings.Join(session.Sandbox.Warnings, "\n")
	}
	if got := warnings(s.Project); strings.Contains(got, "project directory") {
		t.Errorf("control: an ordinary project is announced: %q", got)
	}
	// The symlink first: a session with one of the others could have made it.
	if got := warnings(s.OutsidePath("link")); !strings.Contains(got, "is your home directory") {
		t.Errorf("the home directory behind a symlink: %q", got)
	}
	shared := "/tmp"
	if strings.HasPrefix(s.Home, "/tmp/") {
		shared = "/var/tmp" // the other holds the home of this test
	}
	for project, want := range map[string]string{
		"/": "the project directory is /", s.Home: "is your home directory",
		filepath.Dir(s.Home): "holds your home directory", shared: "shared by all programs",
	} {
		if got := warnings(project); !strings.Contains(got, want) {
			t.Errorf("project %s: want a warning with %q, got %q", project, want, got)
		}
	}
}

// Puts a symlink to the outside in the place of a directory that is a project of
// its own. The next session there would be granted what the link leads to, so
// it does not start, and neither does one of the next sidecar.
func TestALinkInPlaceOfAProjectGrantsNothing(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	leaks := func(settings string, again bool) bool {
		s := newScene(t)
		secretOutside(s)
		nested := s.ProjectPath("nested")
		harness.MakeDir(t, nested)
		initialize := func(params *protocol.InitializeParams) {
			params.WorkspaceFolders = []protocol.WorkspaceFolder{
				{Path: nested, Name: "n"}, {Path: s.Project, Name: "p"},
			}
		}
		options := harness.Options{Settings: settings, Wrap: s.Wrap, Initialize: initialize}
		e := harness.Start(t, s.World, options)
		if output, status := e.Tool(`mv nested old && ln -s "` + s.Outside + `" nested`); status != 0 {
			t.Fatalf("the session could not replace a directory of its project: %s", output)
		}
		if again {
			e = harness.Start(t, s.World, options)
		}
		params := protocol.SpawnParams{Kind: protocol.Tool, Cwd: nested, Command: "cat secret"}
		result, err := harness.Try(e, protocol.Spawn, params)
		if err != nil {
			if !strings.Contains(err.Error(), "which a session could have made") {
				t.Errorf("the session does not start for another reason: %v", err)
			}
			return false
		}
		session := e.Session(result)
		session.Exit()
		return strings.Contains(session.Output(), secretText)
	}
	for name, again := range map[string]bool{"the same sidecar": false, "the next sidecar": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !leaks(harness.Off(), again) {
				t.Fatal("even without a sandbox the link does not lead to the secret")
			}
			if leaks(harness.Settings(nil), again) {
				harness.Breach(t, "a session was granted what another one has linked")
			}
		})
	}
}
