package harness

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// World is the home, the project and the rest of a test. All paths are real
// paths.
type World struct {
	Home    string
	Project string
	// Outside is a directory of the user that Settings does not grant.
	Outside string

	born time.Time
}

// NewWorld makes an empty one that is removed with the test.
func NewWorld(t testing.TB) *World {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return worldIn(t, root)
}

// NewWorldOutsideDefaults makes one whose Outside and Home the default settings
// do not grant either; see OutsideDefaults.
func NewWorldOutsideDefaults(t testing.TB) *World {
	t.Helper()
	return worldIn(t, OutsideDefaults(t))
}

func worldIn(t testing.TB, root string) *World {
	t.Helper()
	w := &World{
		Home: filepath.Join(root, "home"), Project: filepath.Join(root, "project"),
		Outside: filepath.Join(root, "outside"),
	}
	t.Cleanup(func() {
		// It may still write below the home, which is removed next.
		Eventually(t, "the holder of caches has ended", func() bool { return !w.holdsCaches() })
	})
	w.born = time.Now().Add(-time.Second) // file times come from a coarser clock
	for _, dir := range []string{w.Home, w.Project, w.Outside} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// Write makes a file, and the directories above it.
func Write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.NewReader(content), 0o644)
}

// WritePrivate is Write, for a file that only its owner may read, as ssh asks of
// keys.
func WritePrivate(t testing.TB, path, content string) {
	t.Helper()
	Write(t, path, content)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Read returns a file's content, or "" if there is none.
func Read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}

// UserSettings is the path of the user's own settings file in this world.
func (w *World) UserSettings() string {
	return filepath.Join(w.Home, ".config", "sandbox-sidecar", "settings.json")
}

// Sandbox is the content of a "terminal.sandbox" block.
type Sandbox map[string]any

// Settings is a settings file that sandboxes everything, grants the system but
// no temporary directory, and holds the given keys too.
func Settings(extra Sandbox) string {
	block := Sandbox{
		"enabled": true, "apply_to": "both",
		"system_paths": map[string]any{"read_write": []string{
			"/dev/null", "/dev/zero", "/dev/urandom", "/dev/tty",
			"/dev/ptmx",
		}},
	}
	return file(block, extra)
}

// Defaults is a settings file that sandboxes everything with the built-in
// defaults, and holds the given keys too.
func Defaults(extra Sandbox) string { return file(Sandbox{"enabled": true}, extra) }

// Off is a settings file that sandboxes nothing: for positive controls.
func Off() string { return file(Sandbox{"enabled": false}, nil) }

func file(block, extra Sandbox) string {
	for key, value := range extra {
		block[key] = value
	}
	data, err := json.MarshalIndent(map[string]any{"terminal": map[string]any{"sandbox": block}}, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(data)
}

// OutsideDefaults makes a directory that the default settings do not grant, so
// not below a temporary directory. If there is no such place, the test is
// skipped as Require does it.
func OutsideDefaults(t testing.TB) string {
	t.Helper()
	for _, base := range []string{os.Getenv("HOME"), os.Getenv("XDG_RUNTIME_DIR"), "/var/lib", "/srv", "/mnt"} {
		real, err := filepath.EvalSymlinks(base)
		if base == "" || err != nil || underTemp(real) {
			continue
		}
		dir, err := os.MkdirTemp(real, "sidecar-test-")
		if err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	Skip(t, "home", "no writable directory outside the temporary ones")
	return ""
}

func underTemp(path string) bool {
	for _, temp := range []string{
		"/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/tmp",
		"/private/var/folders",
	} {
		if rel, err := filepath.Rel(temp, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}
