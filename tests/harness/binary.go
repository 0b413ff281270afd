package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is the directory of what build has built; "" until then. It is read when no test runs any more.
var built string

var build = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("SIDECAR_BINARY"); given != "" {
		return given, nil
	}
	if err := noteSources(); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "sidecar-build-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // tests may run it as another user
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "sandbox-sidecar")
	command := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	return path, command.Run()
})

// Binary is the path of the sidecar, built once in a test process, or SIDECAR_BINARY where that is set.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatalf("build sidecar: %v", err)
	}
	return path
}

// Main runs a package's tests and removes the binary that was built for them, and what else the package made for all its tests.
// TestMain calls it.
func Main(m *testing.M, cleanups ...func()) {
	status := m.Run()
	for _, cleanup := range cleanups {
		cleanup()
	}
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(status)
}
