package subreaper

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/signaldomain"
)

func TestMain(m *testing.M) {
	proctest.Main(m, map[string]func() int{"subreaper": Run, "domain-killer": signaldomain.RunDomainKiller})
}

func init() {
	proctest.Helpers["describe"] = describe
	proctest.Helpers["hop"] = hop
	proctest.Helpers["exit"] = func(args []string) {
		proctest.Ready()
		status, _ := strconv.Atoi(args[0])
		os.Exit(status)
	}
	proctest.Helpers["many"] = func(args []string) {
		n, _ := strconv.Atoi(args[0])
		for range n {
			_ = proctest.Helper("daemon").Start()
		}
		proctest.Ready()
	}
}

// testSubreapers makes groups whose subreapers run the test binary.
func testSubreapers(t *testing.T) *Factory {
	t.Helper()
	k, err := Open(command, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// describe prints what a process can find out about how it was started.
func describe([]string) {
	dir, _ := os.Getwd()
	fmt.Printf("argv %q\nenv %q\ndir %q\n", os.Args, os.Environ(), dir)
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		name, _, _ := strings.Cut(line, ":")
		if slices.Contains([]string{
			"SigIgn", "SigBlk", "CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp",
			"Groups",
		}, name) {
			fmt.Print(line)
		}
	}
	self, _ := proc.Find(os.Getpid())
	fmt.Println("leads its session:", self.Session == self.PID)
	for fd := range 4 { // those above were inherited by the test, or are the runtime's
		target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		fmt.Println("descriptor", fd, target, err)
	}
	proctest.Ready()
}

// hop starts chains of processes that fork and exit at full speed, by nothing
// but system calls. Each link is a session of its own and lives for some ten
// microseconds. The chains end by themselves if a test fails to end them.
func hop(args []string) {
	chains, _ := strconv.Atoi(args[0])
	for range chains {
		if pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0); pid == 0 &&
			errno == 0 {
			hopOn(300_000)
		}
	}
	proctest.Ready()
	proctest.WaitForEver()
}

// hopOn runs in a child that has none of the Go runtime's threads, so it may do
// nothing but system calls.
//
//go:norace
func hopOn(hops int) {
	for range hops {
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			continue
		}
		if pid != 0 {
			break
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
}

func command() (string, []string) {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path, []string{path, "subreaper"}
}
