//go:build unix

// Package proctest starts processes for the tests of process tracking: trees,
// daemons and chains, which the test binary plays itself. A package that uses it
// calls [Main] from TestMain.
package proctest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// Timeout bounds every wait. It only matters if a test fails.
const Timeout = 30 * time.Second

// Helpers are the roles that the test binary can play. Each prints a line that
// begins with "ready" and names process ids, once its processes run.
var Helpers = map[string]func(args []string){
	"wait":    func([]string) { Ready(); WaitForEver() },
	"tree":    tree,
	"daemon":  daemon,
	"respawn": respawn,
}

// Main runs the tests. If the command line names a helper, or one of the given
// roles as its only argument, it plays that instead.
func Main(m *testing.M, roles map[string]func() int) {
	if len(os.Args) == 2 && roles[os.Args[1]] != nil {
		os.Exit(roles[os.Args[1]]())
	}
	if len(os.Args) > 2 && os.Args[1] == "lifecycle-helper" {
		_, _ = io.Copy(io.Discard, os.Stdin) // a group's leader starts nothing before it was added
		Helpers[os.Args[2]](os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Helper is the command line of a helper.
func Helper(name string, args ...string) *exec.Cmd {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	command := exec.Command(path, append([]string{"lifecycle-helper", name}, args...)...)
	command.Stderr = os.Stderr
	return command
}

// Ready prints that the process is ready, with the ids of its children.
func Ready(pids ...int) { fmt.Println("ready", strings.Trim(fmt.Sprint(pids), "[]")) }

// WaitForEver ignores the signals that can be ignored. The timer ends the
// process if a test fails to.
func WaitForEver() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGTSTP, unix.SIGUSR1)
	<-time.After(2 * Timeout)
}

// tree starts children, waits until they run, and then waits.
func tree(args []string) {
	n, _ := strconv.Atoi(args[0])
	var pids []int
	for range n {
		pids = append(pids, StartReady(Helper("wait"))...)
	}
	Ready(pids...)
	WaitForEver()
}

// daemon leaves a process behind, forked twice and in a session of its own, and
// ends.
func daemon(args []string) {
	next := Helper("wait")
	if len(args) == 0 {
		next = Helper("daemon", "middle")
	}
	next.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pids := StartReady(next)
	Ready(pids[len(pids)-1])
}

// respawn starts a copy of itself and ends, so that a scan rarely finds it. The
// first argument is the number of links of the chain that are left, the second
// is the length of the chain. A third argument makes each link a session of its
// own. A fourth names a file without which the chain ends.
func respawn(args []string) {
	left, _ := strconv.Atoi(args[0])
	if args[0] == args[1] {
		Ready()
	}
	if left == 0 {
		return
	}
	if len(args) > 3 {
		if _, err := os.Stat(args[3]); err != nil {
			return
		}
	}
	next := Helper("respawn", append([]string{strconv.Itoa(left - 1)}, args[1:]...)...)
	next.SysProcAttr = &syscall.SysProcAttr{Setsid: len(args) > 2}
	_ = next.Start() // fails while the group is being killed
}

// StartReady starts a helper and waits for its line. It returns its process id
// and those that the line names.
func StartReady(command *exec.Cmd) []int {
	read, write, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	command.Stdout = write
	err = command.Start()
	write.Close()
	if err != nil {
		panic(err)
	}
	return append([]int{command.Process.Pid}, ReadReady(read)...)
}

// ReadReady waits for the line, and returns the process ids that it names; nil
// if the process ended without one.
func ReadReady(r io.Reader) []int {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "ready"); ok {
			pids := []int{}
			for field := range strings.FieldsSeq(rest) {
				pid, _ := strconv.Atoi(field)
				pids = append(pids, pid)
			}
			return pids
		}
	}
	return nil
}

// Process is what the tests use of a process that a group has started.
type Process interface {
	PID() int
	Wait(stops bool) (syscall.WaitStatus, error)
	Signal(signal syscall.Signal) error
}

// StartIn starts a helper by a group's Start, and returns its process id and
// those that it names, once they run. The helper is reaped when it ends.
func StartIn[P Process](t *testing.T, by func(string, []string, *os.ProcAttr) (P, error), command *exec.Cmd) []int {
	t.Helper()
	process, gate, output, err := Start(by, command)
	if err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		_, _ = process.Wait(false)
	}()
	t.Cleanup(func() {
		_ = process.Signal(unix.SIGKILL) // if the test failed to
		<-reaped
		output.Close()
	})
	gate.Close() // now it may start others
	return append([]int{process.PID()}, ReadReady(output)...)
}

// Start starts a helper by a group's Start. It starts nothing until its gate is
// closed.
func Start[P Process](by func(string, []string, *os.ProcAttr) (P, error), command *exec.Cmd) (
	process P, gate, output *os.File, err error,
) {
	gateEnd, gate, err := os.Pipe()
	if err != nil {
		return process, nil, nil, err
	}
	defer gateEnd.Close()
	output, outputEnd, err := os.Pipe()
	if err != nil {
		return process, nil, nil, errors.Join(err, gate.Close())
	}
	defer outputEnd.Close()
	process, err = by(command.Path, command.Args, &os.ProcAttr{
		Env: command.Env, Files: []*os.File{gateEnd, outputEnd, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return process, nil, nil, errors.Join(err, gate.Close(), output.Close())
	}
	return process, gate, output, nil
}

// MustBeGone waits for processes that are about to end. A process leaves its
// cgroup in the middle of do_exit(), a moment before it becomes a zombie
// (Linux, kernel/exit.c).
func MustBeGone(t *testing.T, pids []int) {
	t.Helper()
	deadline.Until(5*time.Second, func() bool { return !slices.ContainsFunc(pids, Running) })
	for _, pid := range pids {
		if Running(pid) {
			t.Errorf("process %d is still there", pid)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// MustRun fails if one of the processes has ended. The error is what the sweep
// reports that must not have ended them.
func MustRun(t *testing.T, pids []int, sweep error) {
	t.Helper()
	for _, pid := range pids {
		if !Running(pid) {
			t.Errorf("process %d is gone; the sweep reports: %v", pid, sweep)
		}
	}
}

// Soon returns a context that ends with the test, or after Timeout.
func Soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	t.Cleanup(cancel)
	return ctx
}

// StateDir makes a state directory for one test, and returns its real path.
func StateDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Opened reports whether a process holds a file open, by Linux's /proc.
func Opened(pid int, path string) bool {
	links, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == path {
			return true
		}
	}
	return false
}

// Exist reports whether a path names something.
func Exist(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Forge writes a journal with these lines and nothing else, as another program
// might.
func Forge(t *testing.T, dir string, records ...any) string {
	t.Helper()
	var text bytes.Buffer
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	path := filepath.Join(dir, "forged.journal")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
