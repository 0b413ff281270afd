//go:build unix

package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// timeout bounds every wait. It only matters where a test fails.
const timeout = 30 * time.Second

// helpers are what the test binary can be started for beside the tests. Each
// prints a line "ready" with what is worth knowing once its processes stand.
var helpers = map[string]func(args []string){
	"wait":    func([]string) { ready(); waitForEver() },
	"tree":    tree,
	"daemon":  daemon,
	"respawn": respawn,
	"watchdog": func(args []string) {
		// What RunWatchdog does itself, but before the signals are sent.
		signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM)
		ready()
		os.Exit(RunWatchdog(args[0]))
	},
}

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && roles[os.Args[1]] != nil {
		os.Exit(roles[os.Args[1]]())
	}
	if len(os.Args) > 2 && os.Args[1] == "lifecycle-helper" {
		_, _ = io.Copy(io.Discard, os.Stdin) // a group's leader starts nothing before it was added
		helpers[os.Args[2]](os.Args[3:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// helper is the command for one.
func helper(name string, args ...string) *exec.Cmd {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	command := exec.Command(path, append([]string{"lifecycle-helper", name}, args...)...)
	command.Stderr = os.Stderr
	return command
}

func ready(pids ...int) { fmt.Println("ready", strings.Trim(fmt.Sprint(pids), "[]")) }

// waitForEver ignores what can be ignored. The timer ends it where a test
// failed to.
func waitForEver() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGTSTP, unix.SIGUSR1)
	<-time.After(2 * timeout)
}

// tree starts children, waits until they stand, and waits.
func tree(args []string) {
	n, _ := strconv.Atoi(args[0])
	var pids []int
	for range n {
		pids = append(pids, startReady(helper("wait"))...)
	}
	ready(pids...)
	waitForEver()
}

// daemon leaves a process behind, forked twice and in a session of its own, and
// ends.
func daemon(args []string) {
	next := helper("wait")
	if len(args) == 0 {
		next = helper("daemon", "middle")
	}
	next.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pids := startReady(next)
	ready(pids[len(pids)-1])
}

// respawn is a process that is never there when one looks: it starts its like
// and ends. The chain has as many links as the first argument says, of which
// the second is the first one's; a third makes each link a session of its own,
// and a fourth is a file without which it ends.
func respawn(args []string) {
	left, _ := strconv.Atoi(args[0])
	if args[0] == args[1] {
		ready()
	}
	if left == 0 {
		return
	}
	if len(args) > 3 {
		if _, err := os.Stat(args[3]); err != nil {
			return
		}
	}
	next := helper("respawn", append([]string{strconv.Itoa(left - 1)}, args[1:]...)...)
	next.SysProcAttr = &syscall.SysProcAttr{Setsid: len(args) > 2}
	_ = next.Start() // fails where the group is being killed
}

// startReady starts a helper and waits for its line. It returns its pid and
// those that the line names.
func startReady(command *exec.Cmd) []int {
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
	return append([]int{command.Process.Pid}, readReady(read)...)
}

// readReady waits for the line, and returns what it names; nil where the
// process ended without one.
func readReady(r io.Reader) []int {
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

// starter is what a test needs of a group to start its leader.
type starter interface {
	Start(path string, argv []string, attr *os.ProcAttr) (Process, error)
}

// startIn starts a helper as the leader of a group, and returns its pid and
// those it names, once they stand. The helper is reaped when it ends.
func startIn(t *testing.T, group starter, command *exec.Cmd) []int {
	t.Helper()
	process, gate, output, err := start(group, command)
	if err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		_, _ = process.Wait(false)
	}()
	t.Cleanup(func() {
		_ = process.Signal(unix.SIGKILL) // where a test failed to
		<-reaped
		output.Close()
	})
	gate.Close() // now it may start others
	return append([]int{process.PID()}, readReady(output)...)
}

// start starts a helper as the leader of a group. It starts nothing until its
// gate is closed.
func start(group starter, command *exec.Cmd) (process Process, gate, output *os.File, err error) {
	gateEnd, gate, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer gateEnd.Close()
	output, outputEnd, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, errors.Join(err, gate.Close())
	}
	defer outputEnd.Close()
	process, err = group.Start(command.Path, command.Args, &os.ProcAttr{
		Env: command.Env, Files: []*os.File{gateEnd, outputEnd, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, nil, nil, errors.Join(err, gate.Close(), output.Close())
	}
	return process, gate, output, nil
}

// mustBeGone waits for processes that are about to end: one leaves its cgroup
// in the middle of do_exit(), a moment before it becomes a zombie (Linux,
// kernel/exit.c).
func mustBeGone(t *testing.T, pids []int) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for _, pid := range pids {
		for running(pid) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
		if running(pid) {
			t.Errorf("process %d is still there", pid)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	return ctx
}
