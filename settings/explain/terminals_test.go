package explain

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
)

func TestCompile_TerminalsAreTheSessionsOwnUnlessThoseOfOthersAreGranted(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/dev/pts/ptmx": "", "/dev/pts/3": "", "/dev/ptmx": "", "/home/u/project/": "",
	})
	for _, test := range []struct {
		name, user, project string
		own                 bool
		others              string // access to another's terminal
		warned              bool
	}{
		{"by default", `{"enabled": true}`, "", true, "none", false},
		{"with another category written", `{"system_paths": {"read_only": []}}`, "", true, "none", false},
		{
			"with a terminal granted beside", `{"additional_read_write_paths": ["/dev/pts"]}`, "", false,
			"read,write,execute,device", true,
		},
		{
			"with all devices granted beside", `{"additional_read_write_paths": ["/dev"]}`, "", false,
			"read,write,execute,device", true,
		},
		{
			"with a list that has them", `{"system_paths": {"read_write": ["/dev/pts"]}}`, "", false,
			"read,write,execute,device", true,
		},
		{
			"with a list that has the device to open them", `{"system_paths": {"read_write": ["/dev/ptmx"]}}`, "",
			true, "none", false,
		},
		{
			"with a list that has that and others", `{"system_paths": {"read_write": ["/dev/ptmx", "/dev/pts"]}}`, "",
			false, "read,write,execute,device", true,
		},
		{"with a list that has none", `{"system_paths": {"read_write": []}}`, "", false, "none", false},
		{
			"where only reading is granted beside", `{"additional_read_only_paths": ["/dev/pts"]}`, "", true,
			"read", false,
		},
		{
			"where a project wants those of others", `{"enabled": true}`,
			`{"system_paths": {"read_write": ["/dev/pts", "/dev/ptmx"]}}`, true, "none", true,
		},
		{
			"where a project adds those of others", `{"enabled": true}`,
			`{"additional_read_write_paths": ["/dev"]}`, true, "none", true,
		},
		{
			"where a project wants none", `{"enabled": true}`, `{"system_paths": {"read_write": ["/tmp"]}}`,
			false, "none", false,
		},
		{
			"where a project takes those of others back", `{"additional_read_write_paths": ["/dev/pts"]}`,
			`{"additional_read_write_paths": []}`, true, "none", true,
		},
	} {
		c := snapshotOf(t, f, test.user, test.project).Compile(document.KindTerminal)
		if c.Policy.PrivateTerminals != test.own {
			t.Errorf("%s: terminals of its own: %t", test.name, c.Policy.PrivateTerminals)
		}
		if got := settingstest.Access(c.Policy, "/dev/pts/3").String(); got != test.others {
			t.Errorf("%s: another's terminal: %s, want %s", test.name, got, test.others)
		}
		s := snapshotOf(t, f, test.user, test.project)
		writable := settingstest.Access(c.Policy, "/dev/pts").Has(policy.Write)
		for target, want := range map[string]bool{
			"/dev/pts/ptmx": c.Policy.Restricted && (test.own || writable),
			"/dev/pts/3":    writable,
		} {
			x, err := Why(s, document.KindTerminal, Write, target)
			if err != nil || c.Policy.Restricted && x.Allowed != want {
				t.Errorf("%s: write %s is explained %+v, %v", test.name, target, x, err)
			}
		}
		warned := slices.ContainsFunc(c.Diagnostics, func(d document.FileDiagnostic) bool {
			return strings.Contains(d.Message, "the terminals of other programs")
		})
		if warned != test.warned {
			t.Errorf("%s: warned: %t, %v", test.name, warned, c.Diagnostics)
		}
	}
}
