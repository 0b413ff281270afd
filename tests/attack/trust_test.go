//go:build linux

package attack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// greedy is a project's file that asks for a directory that no settings grant.
func greedy(s *scene) string {
	return `{"terminal":{"sandbox":{"additional_read_write_paths":["` + s.Outside + `"]}}}`
}

func (s *scene) projectSettings() string { return s.ProjectPath(".zed/settings.json") }

func (s *scene) trustList() string {
	return filepath.Join(s.Home, ".local/state/sandbox-sidecar/trust.json")
}

// trustForged writes a list of trusted projects that trusts the greedy file.
func trustForged(t testing.TB, s *scene) string {
	t.Helper()
	other := newScene(t)
	harness.Write(t, other.projectSettings(), greedy(s))
	e := other.Start(harness.Settings(nil))
	harness.Call(e, protocol.ProjectTrust, protocol.ProjectTrustParams{ProjectDir: other.Project})
	return strings.ReplaceAll(harness.Read(t, other.trustList()), other.Project, s.Project)
}

// reads reports whether a session in the project can read the secret outside,
// and checks that the sidecar's status of the project agrees.
func (s *scene) reads(e *harness.Editor) bool {
	s.T.Helper()
	output, _ := e.Tool("cat " + s.OutsidePath("secret"))
	return strings.Contains(output, secretText)
}

// Puts the project on the list of trusted projects: by writing the list, by
// replacing it, and by a state directory of its own. The list lies outside of
// what any session may write.
func TestASessionCannotTrustItsOwnProject(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for name, steal := range map[string]func(s *scene, forged string) []string{
		"write": func(s *scene, forged string) []string { return []string{"write", s.trustList(), forged} },
		"replace": func(s *scene, forged string) []string {
			return []string{"write", s.ProjectPath("x"), forged, "then", "rename", s.ProjectPath("x"), s.trustList()}
		},
		"remove": func(s *scene, _ string) []string { return []string{"unlink", s.trustList()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attemptAt := func(settings string) (result, string, bool) {
				s := newScene(t)
				secretOutside(s)
				forged := trustForged(t, s)
				harness.Write(t, s.trustList(), `{"version": 1, "projects": []}`)
				harness.Write(t, s.projectSettings(), greedy(s))
				e := s.Start(settings)
				result := s.attempt(e, steal(s, forged)...)
				harness.Write(t, s.UserSettings(), harness.Settings(nil))
				return result, harness.Read(t, s.trustList()), s.reads(e)
			}
			control, list, reads := attemptAt(harness.Off())
			if !control.done() || name == "remove" && list != "" || name != "remove" && !reads {
				t.Fatalf("control: without a sandbox the list must change: status %d, reads %t, list %s\n%s",
					control.status, reads, list, control.output)
			}
			result, list, reads := attemptAt(harness.Settings(nil))
			if reads || list != `{"version": 1, "projects": []}` || !result.reply.Sandbox.Applied {
				harness.Breach(t, "THE ATTACK WORKS: reads the secret %t, list %s", reads, list)
			}
			if result.done() || !strings.Contains(result.output, "refused: ") {
				t.Errorf("status %d, output:\n%s", result.status, result.output)
			}
		})
	}
}

// Runs the sidecar's own command to trust the project. Inside, it does nothing. That
// it could not either is tried above, by programs that write what it would.
func TestASessionCannotRunTheTrustCommand(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	const refusal = "inside a session nothing is changed"
	run := func(settings func(s *scene) string) (string, bool) {
		s := newScene(t)
		secretOutside(s)
		harness.Write(t, s.projectSettings(), greedy(s))
		e := s.Start(settings(s))
		digest := harness.Digest(t, s.projectSettings())
		output, _ := e.Tool(harness.Binary(t) + " trust --digest " + digest + " " + s.Project)
		harness.Write(t, s.UserSettings(), harness.Settings(nil))
		return output, s.reads(e)
	}
	if output, reads := run(func(*scene) string {
		return harness.Settings(harness.Sandbox{"enabled": false})
	}); !reads || !strings.Contains(harness.Unfold(output), "is trusted") {
		t.Fatalf("control: without a sandbox it must work: %t\n%s", reads, output)
	}
	output, reads := run(func(*scene) string {
		return harness.Settings(
			harness.Sandbox{"additional_executable_paths": []string{filepath.Dir(harness.Binary(t))}})
	})
	if reads || !strings.Contains(harness.Unfold(output), refusal) {
		harness.Breach(t, "THE ATTACK WORKS: %t\n%s", reads, output)
	}
}

// Changes the settings file of a project that the user has trusted, and puts a
// trusted project's file into another project. Trust is for one content in one
// directory.
func TestTrustDoesNotSpread(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	secretOutside(s)
	harmless := `{"terminal":{"sandbox":{"additional_read_only_paths":[]}}}`
	harness.Write(t, s.projectSettings(), harmless)
	e := s.Start(harness.Settings(harness.Sandbox{"protected_paths": []string{"!*"}}))
	trusted := harness.Call(e, protocol.ProjectTrust, protocol.ProjectTrustParams{ProjectDir: s.Project})
	if !trusted.Trusted {
		t.Fatalf("not trusted: %+v", trusted)
	}
	result := s.attempt(e, "write", s.projectSettings(), greedy(s))
	if !result.done() || harness.Read(t, s.projectSettings()) != greedy(s) {
		t.Fatalf("control: a session can write a project's file that nothing protects: %s", result.output)
	}
	if s.reads(e) {
		harness.Breach(t, "THE ATTACK WORKS: what a session wrote is trusted")
	}
	now := harness.Call(e, protocol.ProjectStatus, protocol.ProjectParams{ProjectDir: s.Project})
	if now.Trusted || len(now.Asks) != 1 || now.Asks[0].Key != "additional_read_write_paths" ||
		now.Asks[0].Value != s.Outside {
		t.Errorf("the editor gets: %+v", now)
	}
	// Control: if the user trusts the changed file, it counts.
	harness.Call(e, protocol.ProjectTrust, protocol.ProjectTrustParams{ProjectDir: s.Project, Digest: now.Digest})
	if !s.reads(e) {
		t.Error("control: what the user trusts must count")
	}
	other := filepath.Join(s.Home, "other")
	harness.Must(t, os.MkdirAll(filepath.Join(other, ".zed"), 0o700))
	harness.Write(t, filepath.Join(other, ".zed/settings.json"), greedy(s))
	session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Cwd: other, Command: "cat " + s.OutsidePath("secret")})
	session.Exit()
	if strings.Contains(session.Output(), secretText) {
		harness.Breach(t, "THE ATTACK WORKS: a trusted content is trusted in every directory")
	}
}

// Writes the user's settings: a file that exists, one that does not exist yet,
// and Zed's own. They lie outside of what sessions may write.
func TestASessionCannotWriteTheUsersSettings(t *testing.T) {
	t.Parallel()
	for name, action := range map[string]struct {
		path func(s *scene) string
		make bool
	}{
		"own": {path: func(s *scene) string { return s.UserSettings() }},
		"zed's": {path: func(s *scene) string {
			return filepath.Join(s.Home, ".config/zed/settings.json")
		}, make: true},
		"absent": {path: func(s *scene) string { return filepath.Join(s.Home, ".config/zed/settings.json") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack{
				prepare: func(s *scene) {
					harness.MakeDir(s.T, filepath.Dir(action.path(s)))
					if action.make {
						harness.Write(s.T, action.path(s), "{}")
					}
				},
				actions: func(s *scene) []string { return []string{"write", action.path(s), "{ }"} },
				harm:    func(s *scene, _ string) bool { return harness.Read(s.T, action.path(s)) == "{ }" },
			}.mustFail(t)
		})
	}
}

// Writes the user's settings, the list of trusted projects and Zed's tasks by
// every way that replaces a file, although the settings grant the
// whole home directory. They are protected then, whatever protected_paths says.
func TestGrantedSettingsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "protected_paths")
	targets := map[string]func(s *scene) string{
		"settings": func(s *scene) string { return s.UserSettings() },
		"trust":    func(s *scene) string { return s.trustList() },
		"tasks":    func(s *scene) string { return filepath.Join(s.Home, ".config/zed/tasks.json") },
	}
	ways := map[string]func(s *scene, path string) []string{
		"write": func(_ *scene, path string) []string { return []string{"write", path, "{ }"} },
		"rename": func(s *scene, path string) []string {
			return []string{"write", s.ProjectPath("x"), "{ }", "then", "rename", s.ProjectPath("x"), path}
		},
		"unlink": func(_ *scene, path string) []string { return []string{"unlink", path} },
		"parent": func(_ *scene, path string) []string {
			return []string{"rename", filepath.Dir(path), filepath.Dir(path) + ".away"}
		},
	}
	for target, pathOf := range targets {
		for way, actions := range ways {
			t.Run(target+", "+way, func(t *testing.T) {
				t.Parallel()
				attemptAt := func(enabled bool) (result result, changed bool) {
					s := newScene(t)
					harness.Write(t, s.trustList(), `{"version": 1, "projects": []}`)
					harness.Write(t, filepath.Join(s.Home, ".config/zed/tasks.json"), "[]")
					e := s.Start(harness.Settings(harness.Sandbox{
						"enabled": enabled, "additional_read_write_paths": []string{s.Home},
						"protected_paths": []string{"!*"},
					}))
					before := harness.Read(t, pathOf(s))
					result = s.attempt(e, actions(s, pathOf(s))...)
					return result, harness.Read(t, pathOf(s)) != before
				}
				if control, changed := attemptAt(false); !control.done() || !changed {
					t.Fatalf("control: without a sandbox it must work: status %d, changed %t\n%s",
						control.status, changed, control.output)
				}
				result, changed := attemptAt(true)
				if changed || result.done() || !strings.Contains(result.output, "refused: ") {
					t.Errorf("changed %t, status %d, output:\n%s", changed, result.status, result.output)
				}
				for _, warning := range result.reply.Sandbox.Warnings {
					if strings.Contains(warning, "writable from inside") {
						t.Errorf("warned of what is protected: %s", warning)
					}
				}
			})
		}
	}
}
