package harness

import (
	"os/exec"
	"strings"
	"testing"
)

// Namespaces reports whether sessions get namespaces of their own on this
// machine.
func Namespaces(t testing.TB) bool {
	t.Helper()
	return strings.Contains(mechanism(t, "network"), "network namespace")
}

// WithoutNamespaces starts a command, a sidecar's or another, as on a machine
// without namespaces. The command inherits a seccomp filter that refuses to
// make any, as those of container engines do. The filter also removes clone3,
// whose flags no filter can read.
func WithoutNamespaces(t testing.TB) func(*exec.Cmd) {
	t.Helper()
	return under(t, "without-namespaces")
}

// InContainer starts a command as in a container of an engine whose filter is
// the usual one: there are no namespaces, and no supervisor can answer system
// calls.
func InContainer(t testing.TB) func(*exec.Cmd) {
	t.Helper()
	return under(t, "as-container")
}

// WithoutPidfd starts a command as on a kernel without pidfds (before Linux 5.3), or
// below a filter that does not know them.
func WithoutPidfd(t testing.TB) func(*exec.Cmd) {
	t.Helper()
	return under(t, "without-pidfd")
}

// under starts a command under a filter that an action of the victim installs. The
// victim then becomes the command, so no session sees it, and it needs no copy.
func under(t testing.TB, action string) func(*exec.Cmd) {
	t.Helper()
	victim := program(t, "tests/victim")
	return func(command *exec.Cmd) {
		command.Args = append([]string{victim, action, command.Path}, command.Args[1:]...)
		command.Path = victim
	}
}

// Machine is what a test runs on: this machine, or one with fewer features.
type Machine struct {
	Name string
	// Namespaces is true if sessions have namespaces of their own.
	Namespaces bool
	// Wrap changes the command of a sidecar; nil: not at all.
	Wrap func(*exec.Cmd)
}

// Machines are this one, and, if it has namespaces, this one without them.
func Machines(t testing.TB) []Machine {
	t.Helper()
	without := Machine{Name: "without namespaces", Wrap: WithoutNamespaces(t)}
	if !Namespaces(t) {
		return []Machine{without}
	}
	return []Machine{{Name: "with namespaces", Namespaces: true}, without}
}
