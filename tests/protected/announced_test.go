//go:build linux

package protected

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// announced is a directory that holds more than a project, and is opened as one.
// Accesses are "reads FILE" or "writes FILE", with a path below the home directory.
type announced struct {
	// dir is below the home directory, unless it is absolute.
	dir string
	// said are parts of warnings, with HOME in the place of the home directory.
	said []string
	// opens is what a session may do there, and not in an ordinary project. shut is
	// what it may not. visible is what it may do only if nothing can be hidden.
	opens, shut, visible []string
	// unproved: no refusal is left by which the protection of files is proved.
	unproved bool
}

var allAnnounced = []announced{
	{
		dir: ".ssh", said: []string{"holds SSH keys: sessions may read and write them"},
		opens: []string{"reads .ssh/id_ed25519", "writes .ssh/id_ed25519"},
		shut:  []string{"reads .aws/credentials", "reads notes", "writes notes"},
	},
	{
		dir: ".aws", said: []string{"holds keys of Amazon's cloud: sessions may read and write them"},
		opens: []string{"reads .aws/credentials", "writes .aws/credentials"},
		shut:  []string{"reads .ssh/id_ed25519", "reads notes", "writes notes"},
	},
	{
		dir: ".config", said: []string{`sessions may write it, and "HOME/.config/gh" is below it, and gh runs the aliases`},
		opens:   []string{"writes .config/plain"},
		shut:    []string{"reads .ssh/id_ed25519", "reads notes", "writes notes"},
		visible: []string{"reads .config/gh/hosts.yml"},
	},
	{
		dir: ".", said: []string{"is your home directory: sessions may read and write all your files"},
		opens:   []string{"reads notes", "writes notes", "writes .config/plain"},
		visible: []string{"reads .ssh/id_ed25519", "reads .aws/credentials", "reads .config/gh/hosts.yml"},
	},
	{
		dir: "/", said: []string{
			"the project directory is /: sessions may read every file that you may",
			`the project directory "/" is granted for reading only`,
		},
		opens:    []string{"reads notes"},
		shut:     []string{"writes notes", "writes .config/plain", "writes .ssh/id_ed25519"},
		visible:  []string{"reads .ssh/id_ed25519", "reads .aws/credentials", "reads .config/gh/hosts.yml"},
		unproved: true,
	},
}

// accesses are what a session in the scene's project does of all that the rows
// name.
func (s *scene) accesses(e *editor) (reply protocol.SpawnResult, done map[string]bool) {
	s.T.Helper()
	line := "cd " + harness.Quote(s.Home) + "\n"
	for _, name := range []string{
		".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".config/plain", "notes",
	} {
		line += fmt.Sprintf("cat %s >/dev/null && echo 'reads %[1]s'; (: >>%[1]s) && echo 'writes %[1]s'\n", name)
	}
	reply, output, _, _ := e.run(line + "echo over")
	if !reply.Sandbox.Applied || !strings.HasSuffix(output, "over\n") {
		s.T.Fatalf("%+v: %s", reply.Sandbox, output)
	}
	done = map[string]bool{}
	for line := range strings.Lines(output) {
		done[strings.TrimSuffix(line, "\n")] = true
	}
	return reply, done
}

// TestProjects_ThatHoldMoreAreAnnounced opens such directories. The reply says what
// that opens, and it opens that and no more. The control is a session in an
// ordinary project, which has no such warning, and which can do none of it.
func TestProjects_ThatHoldMoreAreAnnounced(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	machines := harness.Machines(t)
	for i, machine := range machines {
		for j, row := range allAnnounced {
			if !harness.Turn(t, i+j, len(machines)) {
				continue
			}
			t.Run(machine.Name+", "+strings.ReplaceAll(row.dir, "/", "root"), func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				for _, secret := range []string{".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml"} {
					harness.WritePrivate(t, s.HomePath(secret), "secret\n")
				}
				harness.Write(t, s.HomePath(".config/plain"), "plain\n")
				harness.Write(t, s.HomePath("notes"), "notes\n")
				// The editor names the settings, or a session in the home
				// directory could have made them.
				e := s.startWith(harness.Options{
					Settings: harness.Defaults(nil), Wrap: machine.Wrap,
					Initialize: func(p *protocol.InitializeParams) {
						p.InitializationOptions = &protocol.InitializationOptions{UserSettingsPath: s.UserSettings()}
					},
				})
				reply, done := s.accesses(e)
				if said := strings.Join(reply.Sandbox.Warnings, "\n"); strings.Contains(said, "the project directory") {
					t.Errorf("control: an ordinary project is announced: %s", said)
				}
				for _, access := range slices.Concat(row.opens, row.shut) {
					if done[access] {
						t.Errorf("control: a session in an ordinary project %s", access)
					}
				}

				s.Project = row.dir
				if !filepath.IsAbs(row.dir) {
					s.Project = filepath.Join(s.Home, row.dir)
				}
				reply, done = s.accesses(e)
				said := strings.Join(reply.Sandbox.Warnings, "\n")
				for _, want := range row.said {
					if want = strings.ReplaceAll(want, "HOME", s.Home); !strings.Contains(said, want) {
						t.Errorf("no warning has %q: %s", want, said)
					}
				}
				if got := reply.Sandbox.Protections["filesystem"].Status; (got == protocol.Degraded) != row.unproved {
					t.Errorf("the protection of files is %s", got)
				}
				for _, access := range row.opens {
					if !done[access] {
						t.Errorf("control: no session %s", access)
					}
				}
				for _, access := range row.shut {
					if done[access] {
						harness.Breach(t, "a session %s, and no warning says so: %s", access, said)
					}
				}
				for _, access := range row.visible {
					switch {
					case machine.Namespaces && done[access]:
						harness.Breach(t, "a session %s, which is hidden", access)
					case !machine.Namespaces && !done[access]:
						t.Errorf("control: without namespaces no session %s", access)
					}
				}
			})
		}
	}
}
