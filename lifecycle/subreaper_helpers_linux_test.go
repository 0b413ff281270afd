package lifecycle

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func init() {
	runtime.LockOSThread() // before main, on the first thread; see "headless"
	helpers["describe"] = describe
	helpers["hop"] = hop
	helpers["exit"] = func(args []string) {
		ready()
		status, _ := strconv.Atoi(args[0])
		os.Exit(status)
	}
	helpers["headless"] = func([]string) {
		go waitForEver()
		ready()
		// The main goroutine of a program is on the first thread at its start
		// only; locked there, this ends that thread and nothing else.
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	helpers["many"] = func(args []string) {
		n, _ := strconv.Atoi(args[0])
		for range n {
			_ = helper("daemon").Start()
		}
		ready()
	}
}

// testSubreapers are subreapers that run the test binary.
func testSubreapers(t *testing.T) *subreapers {
	t.Helper()
	k, err := openSubreapers(subreaperCommand, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func subreaperCommand() (string, []string) {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path, []string{path, "subreaper"}
}

// describe prints what a process can see of how it was started.
func describe([]string) {
	dir, _ := os.Getwd()
	fmt.Printf("argv %q\nenv %q\ndir %q\n", os.Args, os.Environ(), dir)
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		name, _, _ := strings.Cut(line, ":")
		if slices.Contains([]string{"SigIgn", "SigBlk", "CapInh", "CapPrm", "CapEff", "CapAmb", "NoNewPrivs", "Seccomp",
			"Groups"}, name) {
			fmt.Print(line)
		}
	}
	self, _ := findProcess(os.Getpid())
	fmt.Println("leads its session:", self.session == self.pid)
	for fd := range 4 { // above them are those that the test itself was started with, and the runtime's
		target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		fmt.Println("descriptor", fd, target, err)
	}
	ready()
}

// hop starts chains of processes that fork and exit at full speed, each link in
// a session of its own, by nothing but system calls: a link lives for some ten
// microseconds. They end by themselves where a test failed to end them.
func hop(args []string) {
	chains, _ := strconv.Atoi(args[0])
	for range chains {
		if pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0); pid == 0 &&
			errno == 0 {
			hopOn(300_000)
		}
	}
	ready()
	waitForEver()
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
