//go:build linux

package groups

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// secret is what a target keeps in its memory and in an open file.
const secret = "the-secret-of-a-call"

// target is a call of the group "agent" that keeps a secret until it is killed.
type target struct {
	*harness.Session
	place, file string // the secret's address and length, and its descriptor
}

// newTarget starts one. A tool has no standard input that stays open, so the target
// reads from a FIFO, which it has open for writing, too.
func newTarget(t *testing.T, e *harness.Editor, victim string) target {
	t.Helper()
	if err := unix.Mkfifo(e.World.ProjectPath("hold"), 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		t.Fatal(err)
	}
	s := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Group: "agent", Command: "/bin/bash",
		Args: []string{"-c", `exec "$0" target "$1" <>hold`, victim, secret},
	})
	found := s.Await(`(\d+:\d+) (\d+)\s`)
	return target{s, found[1], found[2]}
}

// command is a command line of the victim about the target.
func (target target) command(victim string, action ...string) string {
	action[0] += " " + strconv.Itoa(target.PID)
	return harness.Quote(victim) + " " + strings.Join(action, " ")
}

// succeeded reports whether a call has ended with the status 0.
func succeeded(exit protocol.ExitedParams) bool { return exit.ExitCode != nil && *exit.ExitCode == 0 }

// Calls of one group trust each other: one can kill, stop, trace and read another.
// No other session of the same project can. A killed call is reported as killed,
// and its group stays. A stopped one holds up no other, and ends when it is closed.
func TestGroup_OnlyItsCallsReachItsProcesses(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "signals")
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		victim := victim(t, e)
		for _, way := range []string{"kill", "kill-thread", "kill-pidfd", "kill-sigio"} {
			mustKillInside(t, e, newTarget(t, e, victim), victim, way)
		}
		kept := newTarget(t, e, victim)
		for name, line := range map[string]string{
			"existence":   "kill -0 $target",
			"trace":       kept.command(victim, "ptrace"),
			"memory":      kept.command(victim, "peek", kept.place) + " | grep -q " + secret,
			"mappings":    "grep -q . /proc/$target/maps",
			"environment": "cat /proc/$target/environ >/dev/null",
			"descriptors": "readlink /proc/$target/fd/0 >/dev/null",
			"directory":   "ls /proc/$target/cwd/ >/dev/null",
			"program":     "readlink /proc/$target/exe >/dev/null",
		} {
			line = fmt.Sprintf("target=%d; %s && echo works", kept.PID, line)
			for _, group := range strangers {
				if out, _ := run(e, group, line); strings.Contains(out, "works") {
					harness.Breach(t, "%s: group %q reaches a process of another: %q", name, group, out)
				}
			}
			if out, _ := run(e, "agent", line); !strings.Contains(out, "works") {
				t.Errorf("control: %s: the next call does not reach the process: %q", name, out)
			}
		}
		stop := fmt.Sprintf("kill -STOP %d", kept.PID)
		for _, group := range strangers {
			if _, exit := run(e, group, stop); succeeded(exit) || isStopped(t, kept.PID) {
				harness.Breach(t, "group %q stops a process of another", group)
			}
		}
		if out, exit := run(e, "agent", stop); !succeeded(exit) {
			t.Errorf("control: the next call cannot stop the process: %q", out)
		}
		harness.Eventually(t, "the process is stopped", func() bool { return isStopped(t, kept.PID) })
		if out, _ := run(e, "agent", "echo runs"); out != "runs" {
			t.Errorf("beside a stopped call the next one printed %q", out)
		}
		if closed := kept.Close(0); closed.Remaining != 0 || harness.Alive(kept.PID) {
			harness.Breach(t, "a stopped call outlives its end: %+v", closed)
		}
	})
}

// mustKillInside has sessions kill a target in one way: other groups in vain, and
// then its own.
func mustKillInside(t *testing.T, e *harness.Editor, target target, victim, way string) {
	t.Helper()
	for _, group := range strangers {
		out, _ := run(e, group, target.command(victim, way))
		// The kernel sends a signal for a pipe without an answer.
		if way != "kill-sigio" && !strings.HasSuffix(out, ": EPERM") {
			t.Errorf("%s by group %q: want a refusal with EPERM, got %q", way, group, out)
		}
	}
	out, _ := run(e, "agent", fmt.Sprintf("kill -0 %d && echo runs", target.PID))
	if out != "runs" || !harness.Alive(target.PID) {
		harness.Breach(t, "%s: another group has killed process %d: %q", way, target.PID, out)
	}
	if out, exit := run(e, "agent", target.command(victim, way)); !succeeded(exit) {
		t.Errorf("control: %s by the next call: %q, %+v", way, out, exit)
	}
	if exit := target.Exit(); exit.Signal == nil || *exit.Signal != "SIGKILL" || exit.GroupEnded {
		t.Errorf("%s: the call ended by %+v", way, exit)
	}
}

// isStopped reports whether a process is stopped by a signal.
func isStopped(t *testing.T, pid int) bool {
	t.Helper()
	return strings.Contains(harness.Read(t, fmt.Sprintf("/proc/%d/status", pid)), "\nState:\tT")
}

// No call takes a descriptor of another process or reads its memory at once: neither
// of the init nor of another call. Without a sandbox it can do both to a call, but
// not to the init, which is not dumpable. Root may read that, too.
func TestGroup_NoDescriptorIsTaken(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for name, settings := range map[string]string{"sandboxed": settings(nil), "unsandboxed": harness.Off()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.Start(t, harness.NewWorldOutsideDefaults(t), harness.Options{Settings: settings})
			victim := victim(t, e)
			kept := newTarget(t, e, victim)
			for _, action := range []string{"pidfd-getfd $target " + kept.file, "vm-read $target " + kept.place} {
				line := harness.Quote(victim) + " " + action
				out, exit := run(e, "agent", fmt.Sprintf("target=%d; %s", kept.PID, line))
				switch open := strings.Contains(out, secret); {
				case open && name == "sandboxed":
					harness.Breach(t, "%s of another call: %q", action, out)
				case !open && name == "unsandboxed":
					t.Errorf("control: %s of another call: %q, %+v", action, out, exit)
				case !open && !strings.HasSuffix(out, ": EPERM"):
					t.Errorf("%s of another call: want a refusal with EPERM, got %q", action, out)
				}
				if name == "unsandboxed" && os.Geteuid() == 0 {
					continue
				}
				out, exit = run(e, "agent", "target=$PPID; "+line)
				if succeeded(exit) {
					harness.Breach(t, "%s of the init: %q", action, out)
				} else if !strings.HasSuffix(out, ": EPERM") {
					t.Errorf("%s of the init: want a refusal with EPERM, got %q", action, out)
				}
			}
			kept.Close(0)
		})
	}
}

// Also a signal to one thread of the init, or by a descriptor of it, ends the group
// with everything in it, and the next call gets a new one. Other ways are in
// TestGroup_EndsWithItsInit.
func TestGroup_EndsWithItsInitByEveryCall(t *testing.T) {
	t.Parallel()
	const byDescriptor = `/usr/bin/python3 -c '
import os, signal, sys; signal.pidfd_send_signal(os.pidfd_open(int(sys.argv[1])), 19)' $PPID`
	for name, line := range map[string]string{
		"kill a thread": "./victim kill-thread $PPID", "kill by a descriptor": "./victim kill-pidfd $PPID",
		"stop by a descriptor": byDescriptor,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
				victim(t, e)
				text, exit := run(e, "agent", "sleep 1000 & echo $! $PPID")
				if exit.Background != 1 {
					t.Fatalf("control: nothing was left: %+v", exit)
				}
				var pids []int
				for _, field := range strings.Fields(text) {
					pid, err := strconv.Atoi(field)
					harness.Must(t, err)
					pids = append(pids, pid)
				}
				runOnceAndKilled(t, e, line+" || exit 9; sleep 1000")
				for _, pid := range pids {
					harness.MustEnd(t, fmt.Sprintf("process %d ends with the group", pid), func() bool {
						return !harness.Alive(pid)
					})
				}
				if out, _ := run(e, "agent", "echo $PPID"); out == "" || out == strconv.Itoa(pids[1]) {
					t.Errorf("the next call has the init %q", out)
				}
			})
		})
	}
}
