//go:build unix

package lifecycle

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStateDir(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"own": 0o700, "open": 0o755, "home": 0o755, "taken": 0o700} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.Mkdir(path, mode), os.Chmod(path, mode)); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "taken", "sandbox-sidecar"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("own", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, env, want string }{
		{"a runtime directory of the user's", "XDG_RUNTIME_DIR=/own HOME=/home", "/own/sandbox-sidecar"},
		{
			"one that others can enter is not trusted", "XDG_RUNTIME_DIR=/open HOME=/home",
			"/home/.local/state/sandbox-sidecar/run",
		},
		{"one that does not exist", "XDG_RUNTIME_DIR=/none HOME=/home", "/home/.local/state/sandbox-sidecar/run"},
		{
			"the state directory goes before home", "XDG_STATE_HOME=/own/state HOME=/home",
			"/own/state/sandbox-sidecar/run",
		},
		{
			"a name that is taken by a file", "XDG_RUNTIME_DIR=/taken HOME=/home",
			"/home/.local/state/sandbox-sidecar/run",
		},
		{"the real path", "XDG_RUNTIME_DIR=/link", "/own/sandbox-sidecar"},
		{"nothing at all", "", ""},
		{"nothing that can be made", "HOME=/taken/sandbox-sidecar", ""},
	}
	for _, test := range tests {
		var env []string
		for entry := range strings.FieldsSeq(test.env) {
			env = append(env, strings.Replace(entry, "=", "="+root, 1))
		}
		got, err := StateDir(env)
		want := test.want
		if want != "" {
			want = root + want
		}
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %q, %v; want %q", test.name, got, err, want)
		}
	}
}
