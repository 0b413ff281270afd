//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/ending"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/meeting"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/owner"
	"github.com/sandbox-sidecar/sandbox-sidecar/control"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/caller"
)

// Commands that one agent starts by a link share a sandbox. The first command
// starts the process that keeps it (keep.go), and the others find that by a file
// whose name says what they must have in common. See docs/design/groups.md.

const (
	// meetTimeout bounds the wait for a process that is starting the sandbox.
	meetTimeout = 30 * time.Second
	// failureTime is how long nothing is tried again after a failure.
	failureTime = time.Minute
	// meetRounds bounds the looks for a sandbox: one may end just then, or be
	// replaced.
	meetRounds = 4
)

// sharesSandbox reports whether a command without a window may share a sandbox. One
// with a terminal of the user's does not: it would lose job control.
func sharesSandbox() bool {
	return settings.Platform == "linux" && os.Getenv(owner.Variable) != owner.Own &&
		!isTerminal(os.Stdin) && !isTerminal(os.Stdout) && !isTerminal(os.Stderr)
}

// hasOwner reports whether a command may have an owner. If it has none, it need not
// wait for what that shares.
func hasOwner() bool {
	_, err := owner.Current(os.Getenv(owner.Variable))
	return !errors.Is(err, owner.ErrNone)
}

// runShared runs a job in the sandbox of its agent. ran is false if it has to run in
// one of its own: nothing was started.
func (j job) runShared(plan *session.Admitted, project, dir string) (exit spawn.Exit, err error, ran bool) {
	if !plan.Shareable() {
		return exit, nil, false
	}
	agent, err := owner.Current(os.Getenv(owner.Variable))
	if err != nil {
		if !errors.Is(err, owner.ErrNone) {
			display.Fprintf(stderr, "sandbox-sidecar: warning: the command has a sandbox of its own: %v\n", err)
		}
		return exit, nil, false
	}
	place, _, err := placeOf(agent, plan, project, j.env)
	if errors.Is(err, errForeign) || errors.Is(err, owner.ErrLate) {
		display.Fprintf(stderr, "sandbox-sidecar: warning: the command has a sandbox of its own: %v\n", err)
	}
	if err != nil {
		return exit, nil, false // mostly there is no state directory
	}
	pipes, err := newPiped()
	if err != nil {
		display.Fprintf(stderr, "sandbox-sidecar: warning: the command has a sandbox of its own: %v\n", err)
		return exit, nil, false
	}
	joined, err := meet(place, agent, spawn.Joining{
		Program: j.program, Argv: j.argv, Env: j.env, Dir: dir, Files: &pipes.files,
	})
	if errors.Is(err, control.ErrNotStarted) {
		pipes.drop()
		if !owner.Lives(agent.PID, agent.Birth, owner.Look) {
			return exit, fmt.Errorf("the command was not started: its agent, %s, has ended", agent), true
		}
		if agent.IsAbove(os.Getpid(), owner.Look) != nil {
			err = errors.New("what has started it has ended")
		}
		if !errors.Is(err, errSaid) {
			display.Fprintf(stderr, "sandbox-sidecar: warning: the command has a sandbox of its own: %v\n", err)
		}
		return exit, nil, false
	}
	ending.KeepOnPipe()
	if err != nil { // it may have run, and printed something
		pipes.begin()
		closeAll(pipes.finish())
		return exit, err, true
	}
	defer joined.Close()
	signals, stop := caller.Catch()
	printSaid(joined.Said)
	pipes.begin()
	end, err := waitOnStreams(joined, signals, true)
	stop() // while this process waits for its caller, signals end it
	left := pipes.finish()
	joined.ReadOn(left)
	closeAll(left)
	printSaid(end.Said)
	return end.Exit, err, true
}

// printSaid prints lines of another process.
func printSaid(lines string) {
	for line := range strings.Lines(lines) {
		display.Fprintf(stderr, "%s\n", strings.TrimSuffix(line, "\n"))
	}
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}

// meet starts a command in the shared sandbox, which it has started if there is
// none. The error is control.ErrNotStarted if that is not possible.
func meet(place meeting.Place, agent owner.Process, joining spawn.Joining) (*control.Joined, error) {
	gone := control.ErrAbsent
	for range meetRounds {
		failure, recent := place.Failed(failureTime)
		found, err := place.Read()
		switch {
		case recent && namesSandbox(found): // what runs there is missed
			return nil, missedError(failure)
		case recent:
			return nil, errJustFailed
		case err != nil:
			return nil, giveUp(place, err, false)
		}
		joined, err := joinAt(place, found, joining)
		switch {
		case err == nil && failure != "":
			place.Succeed()
			return joined, nil
		case !errors.Is(err, control.ErrNotStarted): // nil, too
			return joined, err
		case errors.Is(err, control.ErrSilent):
			return nil, giveUp(place, errSilentKeeper, true)
		case errors.Is(err, control.ErrAbsent):
			if err := start(place, agent, found); err != nil {
				return nil, err
			}
		case errors.Is(err, control.ErrLost):
			// The keeper may have been killed. If so, nothing listens any more.
		default:
			// The keeper refuses the command, unless it is about to end.
			if now, readErr := place.Read(); readErr != nil || now == found {
				return nil, err
			}
		}
		gone = err
	}
	return nil, gone
}

// start starts the sandbox, unless another process does, which has found the same.
func start(place meeting.Place, agent owner.Process, found string) error {
	lock, err := place.Lock(found, meetTimeout)
	if err != nil {
		return giveUp(place, err, false)
	}
	if lock == nil {
		return nil
	}
	defer lock.Close() // the keeper has it, too
	// The process that had the lock before may have failed.
	if _, recent := place.Failed(failureTime); recent {
		return errJustFailed
	}
	if err := startKeeper(place, agent, lock); err != nil {
		return giveUp(place, err, false)
	}
	place.Succeed()
	return nil
}

var (
	errSaid         = errors.New("it was said")
	errJustFailed   = fmt.Errorf("%w: it has just failed: %w", control.ErrNotStarted, errSaid)
	errSilentKeeper = errors.New("the process that keeps it does not answer; `sandbox-sidecar ps` names it")
)

// missedError is control.ErrNotStarted for a reason, though there is a sandbox.
type missedError string

func (e missedError) Error() string { return string(e) }
func (missedError) Unwrap() error   { return control.ErrNotStarted }

// giveUp notes why the agent's commands share no sandbox for now, so that the next
// ones do not try. It says so, unless it has said the same before and no sandbox is
// missed.
func giveUp(place meeting.Place, cause error, missed bool) error {
	before, _ := place.Failed(failureTime)
	if missed || before != cause.Error() {
		display.Fprintf(stderr, "sandbox-sidecar: warning: the agent's commands share no sandbox: %v\n", cause)
	}
	_ = place.Fail(cause.Error()) // without that, the next command tries
	return fmt.Errorf("%w: %w: %w", control.ErrNotStarted, errSaid, cause)
}

// joinAt starts a command in the sandbox that a text of a place names.
func joinAt(place meeting.Place, text string, joining spawn.Joining) (*control.Joined, error) {
	var at kept
	if text == "" {
		return nil, control.ErrAbsent
	}
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		return nil, fmt.Errorf("%w: %w", control.ErrAbsent, err)
	}
	if at.Ended != "" {
		return nil, control.ErrAbsent
	}
	return control.At(place.StateDir(), at.Socket).JoinLink(at.Sandbox, place.Name(), joining)
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
	argv = append(argv, strconv.Itoa(agent.PID), strconv.FormatUint(agent.Birth, 10), place.Name())
	// It ends once the keeper itself is its child no more.
	if err := runFor(meetTimeout, path, argv, w, lock); err != nil {
		return fmt.Errorf("it cannot be started: %w", err)
	}
	w.Close()
	_ = r.SetReadDeadline(time.Now().Add(meetTimeout))
	line, err := bufio.NewReader(io.LimitReader(r, 64<<10)).ReadString('\n')
	if err != nil {
		return fmt.Errorf("it cannot be started: %w", err)
	}
	var answer keeperAnswer
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		return fmt.Errorf("it cannot be started: %w", err)
	}
	if answer.Error != "" {
		return fmt.Errorf("it cannot be started: %s", answer.Error)
	}
	return nil
}

// runFor runs a program in a POSIX session of its own until it ends, for some time
// at most. It has an output and one more file.
func runFor(most time.Duration, path string, argv []string, output, file *os.File) error {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	command := exec.CommandContext(ctx, path)
	command.Args, command.Stdout, command.ExtraFiles = argv, output, []*os.File{file}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err := command.Run()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("it does not start within %v", most)
	}
	return err
}

// errForeign means that the agent's process id is not known to be one of this
// process's namespace.
var errForeign = errors.New("its agent is not known")

// placeOf is where the commands meet that belong to an agent and share a sandbox:
// those with the same policy, project, agents' sockets, and circumstances, which all
// commands in the sandbox get from the process that keeps it. Two containers that
// share a state directory have places of their own. The error is owner.ErrLate if a
// variable may have moved the state directory to where a session writes that runs
// already: what is there proves nothing.
func placeOf(
	agent owner.Process, plan *session.Admitted, project string, env []string,
) (meeting.Place, likeness, error) {
	dir, err := lifecycle.StateDir(os.Environ())
	if err != nil {
		return meeting.Place{}, likeness{}, err
	}
	// The second directory gets the keeper's log and the book of refusals.
	for _, kept := range []string{dir, places.OfList(os.Environ()).State()} {
		if kept == "" || !plan.SessionsWrite(kept) {
			continue
		}
		if err := agent.StartedWith(places.StateVariables(), os.LookupEnv); err != nil {
			return meeting.Place{}, likeness{}, err
		}
	}
	namespace, err := owner.Namespace()
	if err != nil {
		return meeting.Place{}, likeness{}, fmt.Errorf("%w: %w", errForeign, err)
	}
	policyID, noted, around := plan.Shared(env)
	like := likeness{
		Program: digest(versionName()), Project: digest(project), Policy: digest(policyID), Audit: digest(noted),
		Around: digest(around), Circumstances: digest(circumstances()),
	}
	of := meeting.Owner{Namespace: namespace, PID: agent.PID, Birth: agent.Birth}
	return meeting.At(filepath.Join(dir, "shared"), of, fmt.Sprintf("%+v", like)), like, nil
}
