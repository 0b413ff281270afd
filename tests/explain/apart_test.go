//go:build linux

package explain

import (
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// What sessions write to caches, temporary files, an agent's state and a shell's
// history stays apart from what programs outside see, where explain says so, and
// nowhere else. Of a file with a token they read the rest, and nothing of a cache
// that they find empty. Fronts take turns with what the settings keep apart.
func TestExplain_SaysWhatStaysApart(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "temporary_files", "toolchain_caches", "hidden_paths")
	_, random := harness.Generated(t, 1, 14)
	s := newScene(t, random)
	fish := s.HomePath(".local/share/fish")
	harness.MakeDir(t, fish) // only what exists is replaced
	const private, always, never = "private", "always", "never"
	rows := []struct {
		made, target string
		apart        string // by which settings
		typed        bool   // only what somebody types into has it
	}{
		{"create", "/tmp", private, false},
		{"create", "/var/tmp", private, false},
		{"create", "/dev/shm", private, false},
		{"create", s.cache(""), private, false},
		{"append", s.cache("file"), private, false},
		{"create", s.state(""), always, false},
		{"append", s.state("file"), always, false},
		{"create", fish, always, true},
		// The controls are seen outside, whatever the settings say.
		{"create", s.Project, never, false},
		{"append", s.ProjectPath("dir/file"), never, false},
		{"append", s.OutsidePath("dir/file"), never, false},
	}
	s.acts = nil
	for _, row := range rows {
		s.acts = append(s.acts, act{protocol.AccessWrite, row.target, row.made})
	}
	s.acts = append(s.acts, act{protocol.AccessRead, s.HomePath(".npmrc"), "secret"},
		act{protocol.AccessRead, s.daemons(), "read"})
	kinds := []string{"an editor's terminal", "mcp", "a shell"}
	for i, kept := range []string{private, "shared"} {
		settings := harness.Defaults(harness.Sandbox{
			"temporary_files": kept, "toolchain_caches": kept, "toolchains": []string{"ruby", "java", "claude"},
			"additional_read_write_paths": []string{s.OutsidePath("dir")},
		})
		for _, f := range fronts {
			if j := slices.Index(kinds, f.name); j < 0 || !harness.Turn(t, i+j, 2) {
				continue
			}
			t.Run(kept+", "+f.name, func(t *testing.T) {
				tried, said := s.begin(t, f, false, settings).try()
				for _, o := range tried {
					if difference := o.difference(o.allowed()); difference != "" {
						harness.Breach(t, "%s\nsaid %s", difference, said)
					}
				}
				for i, row := range rows {
					o := tried[i]
					allowed := !row.typed || f.kind == protocol.Terminal
					apart := allowed && (row.apart == always || row.apart == kept)
					if o.answer.Allowed != allowed || o.apart() != apart {
						t.Errorf("%s: explain says %t (%s; %s), want %t and apart: %t", o.act, o.answer.Allowed,
							o.answer.Reason, o.answer.Hint, allowed, apart)
					}
				}
				if secret := tried[len(rows)]; !secret.answer.Allowed || secret.result != part {
					t.Errorf("the file with a token: explain says %t (%s), the kernel says %s", secret.answer.Allowed,
						secret.answer.Reason, secret.result)
				}
				want := "done" // by programs outside, too
				if kept == private {
					want = "ENOENT"
				}
				if o := tried[len(rows)+1]; !o.answer.Allowed || o.result != want {
					t.Errorf("%s: explain says %t (%s; %s), the kernel says %s, want %s", o.act, o.answer.Allowed,
						o.answer.Reason, o.answer.Hint, o.result, want)
				}
			})
		}
	}
	t.Run("control, a grant of the file with a token", func(t *testing.T) {
		s.acts = []act{{protocol.AccessRead, s.HomePath(".npmrc"), "secret"}}
		settings := harness.Defaults(harness.Sandbox{"additional_read_only_paths": []string{s.HomePath(".npmrc")}})
		tried, said := s.begin(t, fronts[0], false, settings).try()
		if o := tried[0]; !o.answer.Allowed || o.result != "done" || o.difference(true) != "" {
			t.Errorf("explain says %t (%s), the kernel says %s: %s", o.answer.Allowed, o.answer.Reason, o.result, said)
		}
	})
}
