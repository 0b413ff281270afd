package signaldomain

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

func TestMain(m *testing.M) {
	proctest.Main(m, map[string]func() int{"domain-killer": RunDomainKiller})
}

// Outside of a signal domain, the call would kill every process of the user.
func TestDomainKiller_KillsFromInsideOnly(t *testing.T) {
	t.Parallel()
	ready, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	command := proctest.Helper("wait")
	command.Args = []string{command.Path, "domain-killer"}
	var subreaper Killer
	socket, err := subreaper.Open()
	if err != nil {
		t.Fatal(err)
	}
	command.ExtraFiles = []*os.File{theirs, socket}
	out := command.Run()
	theirs.Close()
	socket.Close()
	subreaper.conn.Close()
	var report [200]byte
	n, _ := ready.Read(report[:])
	if exit, ok := errors.AsType[*exec.ExitError](out); !ok || exit.ExitCode() != 1 ||
		!strings.Contains(string(report[:n]), "can be signalled") {
		t.Errorf("it reports %q, and ends with %v", report[:n], out)
	}
}
