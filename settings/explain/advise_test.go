package explain

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// Who asks about an access gets the setting that a refusal of it suggests, and no
// other. What needs care in words only is named with them.
func TestAdvise_SaysWhatSuggestSays(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/project/.git/HEAD": "", "/home/u/project/.git/config": "", "/home/u/project/.vscode/tasks.json": "",
		"/home/u/.ssh/id": "", "/home/u/.bashrc": "", "/home/u/data/x": "", "/home/u/.aws/credentials": "",
		"/home/u/.ssh/known_hosts": "",
	})
	s := snapshotOf(t, tree, `{"enabled": true}`, "")
	for _, test := range []struct {
		attempt  Attempt
		target   string
		key      string
		careful  bool
		says, no string
	}{
		{Read, "/home/u/.ssh", "", true, `no setting is suggested; to use them through an agent, add "ssh"`, ""},
		{Read, "/home/u/.ssh/id", "", true, `add "ssh" to "toolchains"`, ""},
		{Read, "/home/u/.aws/credentials", "", true, "no setting is suggested", ""},
		{Write, "/home/u/.bashrc", "", true, "no setting is suggested", ""},
		{Write, "/home/u/project/.vscode", "", true, "change it outside the sandbox", "sandbox-sidecar explain"},
		{Write, "/home/u/.ssh/known_hosts", "", true, "only programs outside", ""},
		{Read, "/home/u/data", "additional_read_only_paths", false, "", "careful"},
		{Write, "/home/u/data", "additional_read_write_paths", false, "", "careful"},
		{ConnectUnix, "/run/docker.sock", "allowed_unix_sockets", true, "careful: ", "no setting"},
		{Write, "/home/u/project/x", "", false, "", "careful"},
	} {
		got, err := Advise(s, document.KindTool, test.attempt, test.target)
		must(t, err)
		same, err := Suggest(s, document.KindTool, string(test.attempt), test.target, "")
		must(t, err)
		switch {
		case got.Allowed:
			if test.target != "/home/u/project/x" {
				t.Errorf("%s %s is allowed", test.attempt, test.target)
			}
		case got.Key != test.key || got.Careful() != test.careful || !strings.Contains(got.Hint, test.says) ||
			test.no != "" && strings.Contains(got.Hint, test.no):
			t.Errorf("%s %s: %+v", test.attempt, test.target, got)
		case got.doubt == "" && (got.Key != same.Key || got.Value != same.Value ||
			!strings.HasPrefix(same.Hint, got.Hint)):
			t.Errorf("%s %s: %+v, suggested %+v", test.attempt, test.target, got, same)
		}
	}
}

// Advice that names a command names all of it, and none that a shell would read in
// another way.
func TestSuggest_NamesAWholeCommand(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{"/home/u/project/.git/HEAD": "", "/home/u/project/.git/config": ""})
	s := snapshotOf(t, tree, `{"enabled": true, "protected_paths": ["a b"]}`, "")
	for target, want := range map[string]string{
		"/home/u/project/.vscode": protectedHint + " (sandbox-sidecar explain write /home/u/project/.vscode says why)",
		"/home/u/project/a b":     protectedHint,
	} {
		for _, access := range []string{"write", "create", "remove"} {
			got, err := Suggest(s, document.KindTool, access, target, "sh")
			must(t, err)
			if got.Hint != want || !got.Protected {
				t.Errorf("%s %q: %+v", access, target, got)
			}
		}
	}
}
