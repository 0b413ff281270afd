//go:build linux

package groups

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Whatever ends or stops the init ends the group at once, and the next call gets
// a new one.
func TestGroup_EndsWithItsInit(t *testing.T) {
	t.Parallel()
	const bySignal = `/usr/bin/python3 -c '
import fcntl, os, sys
r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, int(sys.argv[1])); fcntl.fcntl(r, fcntl.F_SETSIG, int(sys.argv[2]))
fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC); os.write(w, b"x")' $PPID `
	for name, line := range map[string]string{
		"kill": "kill -9 $PPID", "stop": "kill -STOP $PPID", "kill all": "kill -9 -1",
		"signal of the C library": "kill -34 $PPID",
		"kill by a pipe":          bySignal + "9", "stop by a pipe": bySignal + "19",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
				_, exit := run(e, "agent", "sleep 1000 & echo $! >left")
				if exit.Background != 1 {
					t.Fatalf("control: nothing was left: %+v", exit)
				}
				left, err := strconv.Atoi(strings.TrimSpace(harness.Read(t, e.World.ProjectPath("left"))))
				harness.Must(t, err)
				runOnceAndKilled(t, e, "trap '' TERM; "+line+"; sleep 1000")
				harness.MustEnd(t, "what was left ends with the group", func() bool { return !harness.Alive(left) })
				if out, _ := run(e, "agent", "echo again"); out != "again" {
					t.Errorf("the next call printed %q", out)
				}
			})
		})
	}
}

// runOnceAndKilled runs a command that ends its group. Either it is killed, or its
// start fails, as it may have ended the group before its start was reported. It
// runs once in either case.
func runOnceAndKilled(t *testing.T, e *harness.Editor, line string) {
	t.Helper()
	result, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
		Kind: protocol.Tool, Group: "agent", Command: "echo x >>ran; " + line, Cwd: e.World.Project,
	})
	if err != nil {
		if !strings.Contains(err.Error(), "the command may have run") {
			t.Errorf("the call could not be started: %v", err)
		}
	} else if exit := e.Session(result).Exit(); exit.Signal == nil || *exit.Signal != "SIGKILL" ||
		!exit.GroupEnded {
		t.Errorf("the call ended by %+v", exit)
	}
	if ran := harness.Read(t, e.World.ProjectPath("ran")); ran != "x\n" {
		harness.Breach(t, "the command ran %d times", strings.Count(ran, "x"))
	}
}

// outside are the processes that keep the group "agent" and are no part of it: the
// sidecar, its watchdog, and, without cgroups, the subreaper with its domain killer.
// The kernel hides the init itself where /proc is mounted with hidepid, as nobody
// may trace it, but lists it among its parent's children.
func outside(t *testing.T, e *harness.Editor) []int {
	t.Helper()
	text, _ := run(e, "agent", "echo $PPID")
	init, err := strconv.Atoi(strings.TrimSpace(text))
	harness.Must(t, err)
	list := append([]int{e.Process()}, harness.Watchdogs(e.World)...)
	if slices.Contains(children(t, e.Process()), init) {
		return list
	}
	for _, subreaper := range harness.Subreapers(e.Process()) {
		if slices.Contains(children(t, subreaper), init) {
			return append(append(list, subreaper), harness.DomainKillers(subreaper)...)
		}
	}
	t.Fatalf("nobody has the init %d as a child", init)
	return nil
}

// children are the child processes of one (proc(5)).
func children(t *testing.T, pid int) (list []int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	harness.Must(t, err)
	for _, thread := range threads {
		for _, word := range strings.Fields(harness.Read(t, thread)) {
			child, err := strconv.Atoi(word)
			harness.Must(t, err)
			list = append(list, child)
		}
	}
	return list
}

// The init ignores every signal that it can, its limits and its priority stay,
// and nobody reads or traces it, nor what keeps the group. All of that works on a
// process of the group.
func TestGroup_TheInitCannotBeChanged(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		if detail := e.Hello.Capabilities.Enforcement["syscalls"].Detail; strings.Contains(detail,
			"but the calling thread's own") {
			harness.Skip(t, "user_notification", detail)
		}
		keeping := outside(t, e)
		for name, attack := range map[string]string{
			"limits":      "prlimit --pid $target --nofile=3:3",
			"priority":    "renice -n 19 -p $target",
			"processors":  "taskset -p 1 $target",
			"memory":      "head -c 1 /proc/$target/mem >/dev/null; cat /proc/$target/maps | grep -q .",
			"environment": "cat /proc/$target/environ >/dev/null",
			"descriptors": "readlink /proc/$target/fd/0",
			"directory":   "ls /proc/$target/cwd/ >/dev/null",
			"trace": `/usr/bin/python3 -c '
import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0))' $target`,
		} {
			// The control is a process that did not execute Python, which may not be
			// granted here.
			out, _ := run(e, "agent", "sleep 1000 & target=$!; "+attack+" 2>&1 && echo works; kill -9 $target")
			if !strings.Contains(out, "works") {
				t.Errorf("control: %s of a process of the group cannot be reached: %q", name, out)
			}
			out, _ = run(e, "agent", "target=$PPID; "+attack+" 2>&1 && echo works")
			if strings.Contains(out, "works") {
				harness.Breach(t, "%s of the init can be reached: %q", name, out)
			}
			for _, pid := range keeping {
				out, _ = run(e, "agent", fmt.Sprintf("target=%d; %s 2>&1 && echo works", pid, attack))
				if strings.Contains(out, "works") {
					harness.Breach(t, "%s of process %d, which keeps the group, can be reached: %q", name, pid, out)
				}
			}
		}
		before, _ := run(e, "agent", "echo $PPID")
		run(e, "agent", `for s in HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM CHLD CONT TSTP TTIN TTOU XCPU
			do kill -$s $PPID; done`)
		if after, _ := run(e, "agent", "echo $PPID"); after != before {
			t.Errorf("the init %s was replaced by %s", before, after)
		}
	})
}

// No call ends or stops what keeps its group: the sidecar, its watchdog, its
// subreapers and domain killers. It can do both to a process of the group.
func TestGroup_WhatKeepsItCannotBeEnded(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "signals")
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		victim := harness.Quote(victim(t, e))
		before, _ := run(e, "agent", "echo $PPID")
		keeping := outside(t, e)
		for _, attack := range []string{
			"kill -9 $target", "kill -STOP $target", "kill -TERM $target", victim + " kill-thread $target",
			victim + " kill-pidfd $target", victim + " kill-sigio $target",
		} {
			out, _ := run(e, "agent", "sleep 1000 & target=$!; "+attack+" && echo works; kill -9 $target")
			if !strings.Contains(out, "works") {
				t.Errorf("control: %s of a process of the group: %q", attack, out)
			}
			for _, pid := range keeping {
				out, _ := run(e, "agent", fmt.Sprintf("target=%d; %s && echo works", pid, attack))
				// The kernel sends a signal for a pipe without an answer.
				if strings.Contains(out, "works") && !strings.Contains(attack, "sigio") || !harness.Alive(pid) ||
					isStopped(t, pid) {
					harness.Breach(t, "%s of process %d, which keeps the group: %q", attack, pid, out)
				}
			}
		}
		if after, _ := run(e, "agent", "echo $PPID"); after != before {
			t.Errorf("the init was %s, and is %s", before, after)
		}
	})
}
