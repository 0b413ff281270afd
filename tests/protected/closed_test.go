//go:build linux

package protected

import (
	"fmt"
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

// aClosedOne is a way in which the repository above the project is closed.
type aClosedOne struct {
	layout  string // "package" if it is ""
	prepare func(s *scene, top string)
	// keys are the settings.
	keys func(top string) harness.Sandbox
	// why is what is said; "" if it is open, or if no session can miss it.
	why string
	// root: only root can prepare it.
	root bool
	// open: sessions read the files of another package.
	open bool
	// home: what is in the home directory matters.
	home bool
}

var closedOnes = map[string]aClosedOne{
	"the control": {open: true},
	"it holds a key": {
		prepare: func(s *scene, top string) {
			must(s, os.Symlink(filepath.Join(top, "ssh"), filepath.Join(s.Home, ".ssh")))
			harness.Write(s.T, filepath.Join(top, "ssh/id_ed25519"), "key\n")
		},
		why: "it holds SSH keys", home: true,
	},
	"it holds several secrets": {
		prepare: func(s *scene, top string) {
			for _, name := range []string{".ssh", ".netrc", ".vault-token"} {
				harness.Write(s.T, filepath.Join(top, "dot", name, "file"), "secret\n")
				must(s, os.Symlink(filepath.Join(top, "dot", name), filepath.Join(s.Home, name)))
			}
		},
		why: "it holds SSH keys, passwords of servers and a token of Vault", home: true,
	},
	"git refuses it": {
		prepare: func(s *scene, top string) { s.append(filepath.Join(top, ".git/config"), "[core\n") },
		why:     "git refuses it",
	},
	"git takes another one": {
		prepare: func(s *scene, top string) {
			s.append(filepath.Join(top, ".git/config"), "[core]\n\tworktree = "+s.Home+"\n")
		},
		why: "git takes another repository there",
	},
	"another user's": {
		prepare: func(s *scene, top string) { must(s, os.Chown(top, 12345, -1)) },
		why:     "another user owns it", root: true,
	},
	"a session could have made it": {
		layout: "package in a worktree",
		keys: func(top string) harness.Sandbox {
			return harness.Sandbox{"additional_read_write_paths": []string{top}}
		},
		why: "a session could have made it", open: true, // by the grant
	},
	"git ignores the project": {
		prepare: func(s *scene, top string) { harness.Write(s.T, filepath.Join(top, ".gitignore"), "packages/\n") },
	},
	"the settings close it": {
		keys: func(string) harness.Sandbox { return harness.Sandbox{"parent_repository": "off"} },
	},
}

// Each start of a session says in the same words why the repository above is
// closed: of an agent's tool, again of the next one, of an editor's terminal, and
// by exec. Nothing is said where it is open, or where the user has closed it. The
// starts after the first take turns.
func TestItIsSaidWhyARepositoryAboveIsClosed(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	confined := share(t, harness.Defaults(nil))
	for i, name := range slices.Sorted(maps.Keys(closedOnes)) {
		test := closedOnes[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.root && os.Geteuid() != 0 {
				harness.Skip(t, "root", "only root gives a directory to another user")
			}
			own := test.home || test.keys != nil
			s, e := confined.in(t)
			if own {
				s = newScene(t)
			}
			layout := test.layout
			if layout == "" {
				layout = "package"
			}
			layouts[layout](s)
			top := filepath.Dir(filepath.Dir(s.Project))
			if test.prepare != nil {
				test.prepare(s, top)
			}
			if own {
				keys := harness.Sandbox{}
				if test.keys != nil {
					keys = test.keys(top)
				}
				e = s.start(harness.Defaults(keys), harness.Machine{})
			}
			var want []string
			if test.why != "" {
				want = []string{fmt.Sprintf("the git repository %q above the project is closed: %s", top, test.why)}
			}
			tool := func() {
				reply, output, status, _ := e.run("cat ../other/source")
				if said := aboutAbove(reply.Sandbox.Warnings); !slices.Equal(said, want) {
					t.Errorf("a tool says %q, want %q", said, want)
				}
				switch open := status == 0; {
				case open && !test.open:
					harness.Breach(t, "it is open: %s", output)
				case !open && test.open:
					t.Errorf("control: it is closed: %s", output)
				}
			}
			terminal := func() {
				session := e.Spawn(protocol.SpawnParams{Shell: &protocol.Shell{Program: "/bin/sh"}})
				if said := aboutAbove(session.Sandbox.Warnings); !slices.Equal(said, want) {
					t.Errorf("a terminal says %q, want %q", said, want)
				}
				session.Close(0)
			}
			byExec := func() {
				command := exec.Command(harness.Binary(t), "exec", "--", "cat", "file")
				command.Dir, command.Env = s.Project, harness.Environ(s.World)
				out, err := command.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "content\n") {
					t.Errorf("control: the project's own file: %v: %s", err, out)
				}
				var printed []string
				for _, text := range want {
					printed = append(printed, "sandbox-sidecar: warning: "+text)
				}
				if said := aboutAbove(strings.Split(harness.Unfold(string(out)), "\n")); !slices.Equal(said, printed) {
					t.Errorf("exec says %q, want %q", said, printed)
				}
			}
			tool()
			more := []func(){tool, terminal, byExec} // a note would be said once
			for j, start := range more {
				if harness.Turn(t, i+j, len(more)) {
					start()
				}
			}
		})
	}
}

// aboutAbove are the lines that say something of the repository above the
// project.
func aboutAbove(lines []string) (list []string) {
	for _, line := range lines {
		if strings.Contains(line, " above the project") {
			list = append(list, line)
		}
	}
	return list
}
