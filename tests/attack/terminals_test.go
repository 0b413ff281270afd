//go:build linux

package attack

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// usersTerminal is one on which the user does something else. Its number is one
// that a session's own terminals do not have at first.
type usersTerminal struct {
	master *os.File
	path   string
	screen harness.Buffer
}

func newUsersTerminal(t testing.TB) *usersTerminal {
	t.Helper()
	u := &usersTerminal{}
	for u.path == "" || u.path == "/dev/pts/0" || u.path == "/dev/pts/1" {
		master, slave, err := pty.Open()
		harness.Must(t, err)
		t.Cleanup(func() { master.Close(); slave.Close() })
		u.master, u.path = master, slave.Name()
	}
	go func() { _, _ = io.Copy(&u.screen, u.master) }() // ends with the terminal
	return u
}

// onMachines runs an attack in a sandbox on each machine, with the default
// settings, which give the session terminals of its own.
func onMachines(t *testing.T, try func(t *testing.T, settings string, machine harness.Machine)) {
	t.Helper()
	harness.Require(t, "filesystem")
	t.Run("control", func(t *testing.T) {
		t.Parallel()
		try(t, harness.Off(), harness.Machine{})
	})
	for _, machine := range harness.Machines(t) {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			try(t, harness.Defaults(nil), machine)
		})
	}
}

// startOn starts an editor in the scene on a machine.
func (s *scene) startOn(settings string, machine harness.Machine) *harness.Editor {
	s.T.Helper()
	return harness.Start(s.T, s.World, harness.Options{Settings: settings, Wrap: machine.Wrap})
}

// Reads what the user types into another terminal, a password for instance.
// With namespaces the terminal does not exist in the session's /dev/pts;
// without, no rule grants it.
func TestAnotherTerminalCannotBeRead(t *testing.T) {
	t.Parallel()
	onMachines(t, func(t *testing.T, settings string, machine harness.Machine) {
		s, u := newScene(t), newUsersTerminal(t)
		session := s.startOn(settings, machine).Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Command: s.Victim,
			Args: []string{"spy", u.path},
		})
		said := session.Await(`(spying|refused: .*)\r\n`)[1]
		if settings == harness.Off() {
			_, err := u.master.WriteString("hunter2\n")
			harness.Must(t, err)
			session.Await(`spied "hunter2`)
			return
		}
		if want := refusalOfTerminal("spy", machine); said != want {
			harness.Breach(t, "THE ATTACK WORKS: want %q, got %q", want, said)
		}
	})
}

func refusalOfTerminal(action string, machine harness.Machine) string {
	if machine.Namespaces {
		return "refused: " + action + ": ENOENT"
	}
	return "refused: " + action + ": EACCES"
}

// Writes to another terminal a text that looks like the output of the user's
// program.
func TestAnotherTerminalCannotBeWrittenTo(t *testing.T) {
	t.Parallel()
	onMachines(t, func(t *testing.T, settings string, machine harness.Machine) {
		s, u := newScene(t), newUsersTerminal(t)
		result := s.attempt(s.startOn(settings, machine), "append", u.path, "please enter your password")
		if settings == harness.Off() {
			if !result.done() {
				t.Fatalf("control: status %d: %s", result.status, result.output)
			}
			u.screen.Await(t, "please enter")
			return
		}
		if got, want := strings.TrimSpace(result.output), refusalOfTerminal("append", machine); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
		if u.screen.Len() > 0 {
			harness.Breach(t, "THE ATTACK WORKS: %q", u.screen.String())
		}
	})
}

// Opens the terminal of another session of the same editor, by its name and by
// the descriptors of that session's shell.
func TestTheTerminalOfAnotherSessionCannotBeOpened(t *testing.T) {
	t.Parallel()
	onMachines(t, func(t *testing.T, settings string, machine harness.Machine) {
		s := newScene(t)
		e := s.startOn(settings, machine)
		other := e.Spawn(protocol.SpawnParams{Shell: &protocol.Shell{Program: "/bin/sh"}})
		other.Type("tty; echo sh''own\n")
		name := other.Await(`(/dev/pts/\d+)\r\n(?s:.*)shown`)[1]
		descriptor := fmt.Sprintf("/proc/%d/fd/1", other.PID)
		for _, path := range []string{name, descriptor} {
			mark := "forged-" + filepath.Base(path)
			result := s.attempt(e, "append", path, mark)
			if settings == harness.Off() {
				if !result.done() {
					t.Fatalf("control: %s: status %d: %s", path, result.status, result.output)
				}
				other.Await(mark)
				continue
			}
			// In a /dev/pts of its own, the session finds its own terminal
			// under that name, or none.
			own := path == name && machine.Namespaces && result.done() && strings.Contains(result.output, mark)
			if !own && !result.refused("EACCES") && !result.refused("ENOENT") {
				t.Errorf("%s: status %d: %s", path, result.status, result.output)
			}
			other.Type("echo af''ter " + mark[7:] + "\n")
			other.Await("after " + mark[7:])
			if strings.Contains(other.Output(), "forged-") {
				harness.Breach(t, "THE ATTACK WORKS by %s:\n%s", path, other.Output())
			}
		}
	})
}

// Takes the master of another session's terminal out of the sidecar, and types
// a command into it.
func TestAMasterCannotBeTakenFromTheSidecar(t *testing.T) {
	t.Parallel()
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil &&
		strings.TrimSpace(string(scope)) != "0" {
		harness.Skip(t, "ptrace", "Yama keeps processes from their parents' descriptors, in the control too")
	}
	onMachines(t, func(t *testing.T, settings string, machine harness.Machine) {
		s := newScene(t)
		e := s.startOn(settings, machine)
		other := e.Spawn(protocol.SpawnParams{Shell: &protocol.Shell{Program: "/bin/sh"}})
		other.Type("echo rea''dy\n")
		other.Await("ready")
		master := masterOf(t, e.Process())
		result := s.attempt(e, "steal-terminal", strconv.Itoa(e.Process()), master)
		if settings == harness.Off() {
			if !result.done() {
				t.Fatalf("control: status %d: %s", result.status, result.output)
			}
			other.Await(`stolen\r\n`)
			return
		}
		if !result.refused("EPERM") {
			t.Errorf("want EPERM, got status %d: %s", result.status, result.output)
		}
		other.Type("echo af''ter\n")
		other.Await("after")
		if strings.Contains(other.Output(), "stolen") {
			harness.Breach(t, "THE ATTACK WORKS:\n%s", other.Output())
		}
	})
}

// masterOf finds the descriptor of a terminal's master in a process.
func masterOf(t testing.TB, pid int) string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	harness.Must(t, err)
	for _, entry := range entries {
		if link, err := os.Readlink(filepath.Join(dir, entry.Name())); err == nil && strings.HasSuffix(link, "/ptmx") {
			return entry.Name()
		}
	}
	t.Fatalf("process %d has no terminal", pid)
	return ""
}

// Opens new terminals inside. They exist if the session has a /dev/pts of its
// own. Otherwise they are refused, with a fix in the reply, and the fix works.
func TestNewTerminalsInsideAreTheSessionsOwn(t *testing.T) {
	t.Parallel()
	onMachines(t, func(t *testing.T, settings string, machine harness.Machine) {
		if settings == harness.Off() {
			machine.Namespaces = true // it opens the shared ones
		}
		s := newScene(t)
		result := s.attempt(s.startOn(settings, machine), "open-pty")
		if result.done() != machine.Namespaces || !machine.Namespaces && !result.refused("EACCES") {
			t.Errorf("status %d: %s", result.status, result.output)
		}
		if machine.Namespaces {
			return
		}
		files := result.reply.Sandbox.Protections["filesystem"]
		if !strings.Contains(files.Detail, "tmux") || !strings.Contains(files.Fix, `"/dev/pts"`) {
			t.Errorf("the reply does not say so: %+v", files)
		}
		mended := newScene(t)
		e := mended.startOn(harness.Defaults(harness.Sandbox{"additional_read_write_paths": []string{"/dev/pts"}}),
			machine)
		if result := mended.attempt(e, "open-pty"); !result.done() {
			t.Errorf("the fix does not help: status %d: %s", result.status, result.output)
		}
	})
}

// Lists the terminals in /dev/pts. A session's own /dev/pts holds only those
// that the session has opened.
func TestOtherTerminalsAreInvisible(t *testing.T) {
	t.Parallel()
	onMachines(t, func(t *testing.T, settings string, machine harness.Machine) {
		s, u := newScene(t), newUsersTerminal(t)
		result := s.attempt(s.startOn(settings, machine), "list", "/dev/pts")
		seen := strings.Contains(result.output, filepath.Base(u.path)+"\n")
		switch {
		case settings == harness.Off():
			if !seen {
				t.Errorf("control: status %d: %s", result.status, result.output)
			}
		case machine.Namespaces:
			if !result.done() || seen {
				t.Errorf("status %d: %s", result.status, result.output)
			}
		case !result.refused("EACCES"):
			t.Errorf("status %d: %s", result.status, result.output)
		}
	})
}
