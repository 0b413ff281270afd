//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/meeting"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/owner"
	"github.com/sandbox-sidecar/sandbox-sidecar/control"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/caller"
)

// Commands that one agent starts by a link share a sandbox. The first command
// starts the process that keeps it (keep.go), and the others find that by a file
// whose name says what they must have in common. See docs/design/groups.md.

// meetTimeout bounds the wait for a process that is starting the sandbox.
const meetTimeout = 30 * time.Second

// kept says where a shared sandbox is. Its JSON is what processes leave where they
// meet.
type kept struct {
	Socket  string `json:"socket"`
	Sandbox string `json:"sandbox"`
}

// sharesSandbox reports whether a command without a window may share a sandbox. One
// with a terminal of the user's does not: it would lose job control.
func sharesSandbox() bool {
	return settings.Platform == "linux" && os.Getenv(owner.Variable) != owner.Own &&
		!isTerminal(os.Stdin) && !isTerminal(os.Stdout) && !isTerminal(os.Stderr)
}

// runShared runs a job in the sandbox of its agent. ran is false if it has to run in
// one of its own: nothing was started.
func (j job) runShared(plan *session.Admitted, project, dir string) (exit spawn.Exit, err error, ran bool) {
	if !plan.Shareable() {
		return exit, nil, false
	}
	agent, err := owner.Of(os.Getpid(), os.Getenv(owner.Variable), owner.Look)
	if err != nil {
		if !errors.Is(err, owner.ErrNone) {
			display.Fprintf(stderr, "sandbox-sidecar: warning: the command has a sandbox of its own: %v\n", err)
		}
		return exit, nil, false
	}
	place, err := placeOf(agent, plan, project, j.env)
	if err != nil {
		return exit, nil, false // there is no state directory
	}
	joined, err := meet(place, agent, spawn.Joining{
		Program: j.program, Argv: j.argv, Env: j.env, Dir: dir, Files: &[3]*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	switch {
	case errors.Is(err, control.ErrNotStarted):
		return exit, nil, false
	case err != nil:
		return exit, err, true
	}
	defer joined.Close()
	signals, stop := caller.Catch()
	defer stop()
	fmt.Fprint(stderr, joined.Said)
	end, err := waitOnStreams(joined, signals, true)
	fmt.Fprint(stderr, end.Said)
	return end.Exit, err, true
}

// meet starts a command in the shared sandbox, which it has started if there is
// none. The error is control.ErrNotStarted if that is not possible.
func meet(place meeting.Place, agent owner.Process, joining spawn.Joining) (*control.Joined, error) {
	found, err := place.Read()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", control.ErrNotStarted, err)
	}
	if found != "" {
		joined, err := joinAt(found, joining)
		if !errors.Is(err, control.ErrAbsent) {
			return joined, err
		}
	}
	lock, err := place.Lock(found, meetTimeout)
	if err == nil && lock != nil {
		err = startKeeper(place, agent, lock)
		lock.Close() // the keeper has it, too
	}
	if err == nil {
		found, err = place.Read()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", control.ErrNotStarted, err)
	}
	return joinAt(found, joining)
}

func joinAt(text string, joining spawn.Joining) (*control.Joined, error) {
	var at kept
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		return nil, fmt.Errorf("%w: %w", control.ErrAbsent, err)
	}
	return control.At(at.Socket).JoinLink(at.Sandbox, joining)
}

// startKeeper starts the process that keeps a sandbox, and waits until it has
// left at the place where that is. The keeper has the lock of the place until
// then, even if this process ends.
func startKeeper(place meeting.Place, agent owner.Process, lock *os.File) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	path, argv := reexec(keepRole)()
	keeper := exec.Command(path)
	keeper.Args = append(argv, strconv.Itoa(agent.PID), strconv.FormatUint(agent.Birth, 10), place.Name())
	keeper.Stdout, keeper.SysProcAttr = w, &syscall.SysProcAttr{Setsid: true}
	keepToOneself()
	keeper.ExtraFiles = []*os.File{lock}
	if err := keeper.Run(); err != nil { // it ends once the keeper itself is its child no more
		return fmt.Errorf("start the shared sandbox: %w", err)
	}
	w.Close()
	_ = r.SetReadDeadline(time.Now().Add(meetTimeout))
	line, err := bufio.NewReader(io.LimitReader(r, 64<<10)).ReadString('\n')
	if err != nil {
		return fmt.Errorf("start the shared sandbox: %w", err)
	}
	var answer keeperAnswer
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		return fmt.Errorf("start the shared sandbox: %w", err)
	}
	if answer.Error != "" {
		return fmt.Errorf("start the shared sandbox: %s", answer.Error)
	}
	return nil
}

// keepToOneself keeps the descriptors that this process has inherited from the
// keeper, which would hold them for as long as the agent lives.
func keepToOneself() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// placeOf is where the commands meet that belong to an agent and share a sandbox:
// those with the same policy, project, agents' sockets, and circumstances, which all
// commands in the sandbox get from the process that keeps it.
func placeOf(agent owner.Process, plan *session.Admitted, project string, env []string) (meeting.Place, error) {
	dir, err := lifecycle.StateDir(os.Environ())
	if err != nil {
		return meeting.Place{}, err
	}
	key := fmt.Sprintf("%q %q %s\n%s", versionName(), project, plan.Shared(env), circumstances())
	return meeting.At(filepath.Join(dir, "shared"), agent.PID, agent.Birth, key), nil
}
