//go:build linux

package attack

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Changes the priority, the processors and the scheduling of a process outside
// that belongs to the same user, by every call that there is. A session cannot
// reach it: the supervisor that decides these calls knows the session's own
// processes.
func TestPrioritiesOutsideCannotBeChanged(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	for _, action := range []string{
		"affinity", "scheduler", "parameters", "attributes", "priority", "priority-group",
		"io",
		"io-group",
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			try := func(settings string, machine harness.Machine) (result, bool) {
				s := newScene(t)
				p := newProcessID(t, s)
				e := harness.Start(t, s.World, harness.Options{Settings: settings, Wrap: machine.Wrap})
				before := standing(t, p.pid)
				result := s.attempt(e, action, strconv.Itoa(p.pid))
				return result, standing(t, p.pid) != before
			}
			silent := action == "affinity" || action == "parameters" // they set the present value
			if control, harm := try(harness.Off(), harness.Machine{}); !control.done() || !harm && !silent {
				t.Fatalf("control: without a sandbox it must work: status %d, changed: %t\n%s", control.status, harm,
					control.output)
			}
			for _, machine := range harness.Machines(t) {
				result, harm := try(harness.Settings(nil), machine)
				if harm {
					harness.Breach(t, "THE ATTACK WORKS %s: status %d\n%s", machine.Name, result.status, result.output)
				}
				if !result.refused("EPERM") {
					t.Errorf("%s: want a refusal with EPERM, got status %d\n%s", machine.Name, result.status,
						result.output)
				}
			}
		})
	}
}

// standing is a process's nice value, scheduling policy and I/O priority.
func standing(t testing.TB, pid int) [3]int {
	t.Helper()
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	harness.Must(t, err)
	attr, err := unix.SchedGetAttr(pid, 0)
	harness.Must(t, err)
	const process = 1 // IOPRIO_WHO_PROCESS
	io, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, process, uintptr(pid), 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return [3]int{nice, int(attr.Policy), int(io)}
}

// Changes those of a process of another session, and of the process that kills
// this session at its end.
func TestPrioritiesOfAnotherSessionCannotBeChanged(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	for _, machine := range settled(t) {
		try := func(settings string) (result, bool) {
			s := newScene(t)
			e := harness.Start(t, s.World, harness.Options{Settings: settings, Wrap: machine.Wrap})
			shell := e.Shell()
			shell.Await(`[#$] `)
			before := standing(t, shell.PID)
			result := s.attempt(e, "priority", strconv.Itoa(shell.PID))
			return result, standing(t, shell.PID) != before
		}
		if control, harm := try(harness.Off()); !control.done() || !harm {
			t.Fatalf("control: %s: without a sandbox it must work: status %d\n%s", machine.Name, control.status,
				control.output)
		}
		if result, harm := try(harness.Settings(nil)); harm || !result.refused("EPERM") {
			t.Errorf("%s: want a refusal with EPERM, got status %d, changed %t\n%s", machine.Name, result.status, harm,
				result.output)
		}
	}
}

// settled are machines by how they tell a session's processes from others: by
// its mounts, by its cgroup, or by the parent process.
func settled(t testing.TB) []harness.Machine {
	t.Helper()
	machines, bare := harness.Machines(t), harness.WithoutCgroups(t)
	for _, machine := range machines {
		machines = append(machines, harness.Machine{
			Name: machine.Name + " and without cgroups",
			Wrap: func(command *exec.Cmd) {
				if machine.Wrap != nil {
					machine.Wrap(command)
				}
				bare(command)
			},
		})
	}
	return machines
}

// Changes the priority of the session's own processes: of a child, of an
// orphan, and by another thread's id. Changes the orphan's limits, too.
func TestPrioritiesInsideCanBeChanged(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	const line = `sleep 60 & renice -n 19 -p $! && kill $!
setsid sh -c 'sleep 60 & echo $! >orphan'
renice -n 19 -p "$(cat orphan)" && prlimit --pid "$(cat orphan)" --nofile=64:64 && kill "$(cat orphan)"
/usr/bin/python3 -c '
import os, threading
def choose(): os.sched_setaffinity(threading.get_native_id(), os.sched_getaffinity(0)); print("chosen")
threading.Thread(target=choose).start()'`
	for _, machine := range settled(t) {
		e := harness.Start(t, newScene(t).World, harness.Options{Wrap: machine.Wrap})
		if detail := e.Hello.Capabilities.Enforcement["syscalls"].Detail; strings.Contains(detail,
			"but the calling thread's own") {
			harness.Skip(t, "user_notification", detail)
		}
		if output, status := e.Tool(line); status != 0 || !strings.Contains(output, "chosen") ||
			strings.Contains(output, "failed") {
			t.Errorf("%s: status %d:\n%s", machine.Name, status, output)
		}
	}
}

// Changes the priority of the domain killer of a session without a cgroup. It
// shares the session's mounts and parent.
func TestThePriorityOfTheDomainKillerCannotBeChanged(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls", "signals")
	for _, machine := range settled(t)[len(harness.Machines(t)):] {
		e := harness.Start(t, newScene(t).World, harness.Options{Wrap: machine.Wrap})
		shell := e.Shell()
		shell.Await(`[#$] `)
		domainKiller := siblingNamed(t, shell.PID, "domain-killer")
		before := standing(t, domainKiller)
		shell.Type(fmt.Sprintf("renice -n 19 -p %d; echo sta''tus $?\n", domainKiller))
		if status := shell.Await(`status (\d+)`)[1]; status == "0" || standing(t, domainKiller) != before {
			harness.Breach(t, "THE ATTACK WORKS %s: status %s\n%s", machine.Name, status, shell.Output())
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, domainKiller, before[0]+1); err != nil {
			t.Errorf("control: %s: from outside it must work: %v", machine.Name, err)
		}
	}
}

// siblingNamed finds the process with a given last argument that has the same
// parent as another.
func siblingNamed(t testing.TB, pid int, name string) int {
	t.Helper()
	parent := func(pid string) string {
		status, _ := os.ReadFile("/proc/" + pid + "/status") // the process may be gone
		_, rest, _ := strings.Cut(string(status), "\nPPid:\t")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	entries, err := os.ReadDir("/proc")
	harness.Must(t, err)
	above := parent(strconv.Itoa(pid))
	for _, entry := range entries {
		sibling, err := strconv.Atoi(entry.Name())
		if err != nil || parent(entry.Name()) != above {
			continue
		}
		if command, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline"); strings.HasSuffix(string(command),
			"\x00"+name+"\x00") {
			return sibling
		}
	}
	t.Fatalf("process %d has no sibling %s", pid, name)
	return 0
}
