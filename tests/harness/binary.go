package harness

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const module = "github.com/sandbox-sidecar/sandbox-sidecar/"

// builtDir makes the directory of the programs that this test process builds.
var builtDir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sidecar-build-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) // tests may run what is in it as another user
})

// builds holds, by package, a function that builds it once and returns the
// program's path.
var builds sync.Map

// program builds one of the module's commands, once in a test process. If
// SIDECAR_PROGRAMS names a directory, the programs are there already, each at
// the path of its package: a machine that only runs tests has no compiler.
func program(t testing.TB, pkg string) string {
	t.Helper()
	if given := os.Getenv("SIDECAR_PROGRAMS"); given != "" {
		return filepath.Join(given, pkg)
	}
	once, _ := builds.LoadOrStore(pkg, sync.OnceValues(func() (string, error) { return goBuild(pkg) }))
	built, err := once.(func() (string, error))()
	if err != nil {
		t.Fatalf("build %s: %v", pkg, err)
	}
	return built
}

func goBuild(pkg string) (string, error) {
	if err := noteSources(); err != nil {
		return "", err
	}
	dir, err := builtDir()
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, pkg) // two packages may have the same last name
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return "", err
	}
	command := exec.Command("go", "build", "-trimpath", "-o", out, module+pkg)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	return out, command.Run()
}

// Binary is the path of the sidecar, built once in a test process.
// SIDECAR_BINARY names another one.
func Binary(t testing.TB) string {
	t.Helper()
	if given := os.Getenv("SIDECAR_BINARY"); given != "" {
		return given
	}
	return program(t, "cmd/sandbox-sidecar")
}

// BinaryWithMCP is Binary, with the program beside it that serves MCP.
func BinaryWithMCP(t testing.TB) string {
	t.Helper()
	if os.Getenv("SIDECAR_BINARY") == "" {
		program(t, "cmd/sandbox-sidecar-mcp")
	}
	return Binary(t)
}

// BinaryWithCredentials is Binary, with the program beside it that has secrets.
func BinaryWithCredentials(t testing.TB) string {
	t.Helper()
	if os.Getenv("SIDECAR_BINARY") == "" {
		program(t, "cmd/sandbox-sidecar-credentials")
	}
	return Binary(t)
}

// Victim puts a copy of a hostile program, the given package of this module, at
// a path. Sessions can only execute it where their settings allow that.
func Victim(t testing.TB, pkg, path string) {
	t.Helper()
	CopyProgram(t, program(t, pkg), path)
}

// CopyProgram puts a copy of a program at a path. It is no hard link: a session that
// may write the copy would change the program of all tests.
func CopyProgram(t testing.TB, from, path string) {
	t.Helper()
	source, err := os.Open(from)
	Must(t, err)
	defer source.Close()
	write(t, path, source, 0o700)
}

// WriteProgram makes a file that its owner may execute at once.
func WriteProgram(t testing.TB, path, content string) {
	t.Helper()
	write(t, path, strings.NewReader(content), 0o700)
}

// write makes a file that can be executed as soon as its mode allows that. If the
// content is a file, the kernel copies it.
func write(t testing.TB, path string, content io.Reader, mode fs.FileMode) {
	t.Helper()
	// If another test forked while the file is open for writing, the child
	// would hold it open until it execs, and the kernel executes no such file
	// (ETXTBSY). The lock keeps forks out.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	_, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	Must(t, err)
	_, err = io.Copy(file, content)
	Must(t, errors.Join(err, file.Close()))
	if isNew { // whatever the umask is: what only its owner may read counts as a secret
		Must(t, os.Chmod(path, mode))
	}
}

// Main runs a package's tests and removes what was built for them. TestMain
// calls it.
func Main(m *testing.M) {
	// Under nohup(1), SIGHUP is ignored, and every process that a test starts
	// would inherit that. A caught signal is not inherited.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	status := m.Run()
	if dir, err := builtDir(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(status)
}
