//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/control"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/caller"
)

// shortestID is how many digits of an id suffice.
const shortestID = 4

// drainTime bounds the wait for the rest of the output of a command that has ended:
// what it has left in the background may print for ever.
const drainTime = 100 * time.Millisecond

// joinError says that nothing can be joined by a name.
type joinError struct{ why, advice string }

func (e *joinError) Error() string { return "join: " + e.why }
func (e *joinError) hint() string  { return e.advice }

// target is a shared sandbox, and the process that runs it.
type target struct {
	supervisor *control.Supervisor
	sandbox    control.Session
}

// findSandbox finds the shared sandbox with a name, or with an id that begins so. A
// session in it stands for it.
func findSandbox(supervisors []control.Supervisor, named string) (target, error) {
	var found []target
	var alone control.Session
	short := false
	id := strings.ToLower(named)
	known := map[string]bool{}
	for i, s := range supervisors {
		for _, session := range s.Sessions {
			isID := strings.HasPrefix(session.ID, id)
			if isID && len(id) < shortestID {
				isID, short = false, true
			}
			switch {
			case session.Shared && (isID || session.Group == named):
				if !known[session.ID] {
					found, known[session.ID] = append(found, target{&supervisors[i], session}), true
				}
			case isID && session.Sandbox != "":
				for _, other := range s.Sessions {
					if other.Shared && other.ID == session.Sandbox && !known[other.ID] {
						found, known[other.ID] = append(found, target{&supervisors[i], other}), true
					}
				}
			case isID:
				alone = session
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		newest := slices.MaxFunc(found, func(a, b target) int {
			return a.sandbox.StartedAt.Compare(b.sandbox.StartedAt)
		}).sandbox
		return target{}, &joinError{
			fmt.Sprintf("%s names %d sandboxes, the newest of them %.8s in %s", quoted(named), len(found), newest.ID,
				quoted(newest.ProjectDir)),
			"use an id; `sandbox-sidecar ps` has them all",
		}
	case alone.ID != "":
		return target{}, &joinError{
			fmt.Sprintf("session %.8s has a sandbox of its own, which no other command can enter", alone.ID),
			"the tools of an editor or an agent share one, if they name a group",
		}
	}
	if short {
		return target{}, &joinError{
			fmt.Sprintf("%s is too short for an id", quoted(named)),
			fmt.Sprintf("use at least the first %d digits that `sandbox-sidecar ps` shows", shortestID),
		}
	}
	return target{}, &joinError{"no sandbox has the id or name " + quoted(named), "`sandbox-sidecar ps` lists them"}
}

// joinSandbox runs a command in a sandbox that runs, and returns its exit status.
func joinSandbox(flags *flagSet, named string) error {
	supervisors, silent := control.List(lifecycle.StateDirs(os.Environ()))
	for _, err := range silent {
		display.Fprintf(stderr, "sandbox-sidecar: warning: %v\n", err)
	}
	found, err := findSandbox(supervisors, named)
	if err != nil {
		return err
	}
	dir, err := workingDir()
	if err != nil {
		return fmt.Errorf("find working directory: %w", err)
	}
	here, project := dir, filepath.Clean(found.sandbox.ProjectDir)
	if filepath.IsAbs(project) && dir != project && !strings.HasPrefix(dir, project+"/") {
		dir = project
		printNotes([]string{"the command runs in the project's directory: " + quoted(dir)})
	}
	joining := spawn.Joining{Argv: flags.Args(), Env: environ(), Dir: dir}
	signals, stop := caller.Catch()
	defer stop()
	modes := caller.ModesNow()
	defer modes.Restore()
	var end control.End
	if isTerminal(os.Stdin) && isTerminal(os.Stdout) {
		end, err = joinOnTerminal(found, joining, signals)
	} else {
		end, err = joinOnStreams(found, joining, signals)
	}
	modes.Restore()
	printJoinedEnd(end, allowIn(here, project))
	if err != nil {
		return err
	}
	return endOf(end.Exit)
}

// printJoinedEnd prints what a command was refused, and how to find out what would
// allow it: its sandbox may have other settings than those of now.
func printJoinedEnd(end control.End, allow string) {
	if len(end.Denied) > 0 {
		fmt.Fprintln(stderr, "sandbox-sidecar: refused by the sandbox:")
	}
	for _, denied := range end.Denied {
		display.Fprintf(stderr, "sandbox-sidecar:   %s\n", display.Line(denied.Line))
		if denied.Number > 0 {
			display.Fprintf(stderr, "sandbox-sidecar:     what would allow it: %s %d\n", allow, denied.Number)
		}
	}
	if end.More > 0 {
		display.Fprintf(stderr, "sandbox-sidecar:   and %d more\n", end.More)
	}
}

// allowIn is the command that allows what was refused in a project.
func allowIn(here, project string) string {
	if here == project {
		return "sandbox-sidecar allow"
	}
	return "sandbox-sidecar allow --project " + quoted(project)
}

// joinOnTerminal gives the command a terminal of the sandbox's own, and copies
// between that and the caller's.
func joinOnTerminal(found target, joining spawn.Joining, signals <-chan caller.Signal) (control.End, error) {
	joining.Size = sizeOf(os.Stdin)
	joined, err := found.supervisor.Join(found.sandbox.ID, joining)
	if err != nil {
		return control.End{}, err
	}
	defer joined.Close()
	typed, err := copyKeys(joined.Terminal, true)
	if err != nil {
		return control.End{}, fmt.Errorf("read terminal: %w", err)
	}
	defer typed.Stop()
	read := make(chan struct{})
	go func() {
		defer close(read)
		copyOutput(os.Stdout, joined.Terminal)
	}()
	end, err := waitForJoined(joined, signals, func(arrived caller.Signal) {
		switch arrived.Number {
		case unix.SIGWINCH:
			setTerminalSize(joined.Terminal, sizeOf(os.Stdin))
		case unix.SIGCONT:
			typed.Resumed()
			setTerminalSize(joined.Terminal, sizeOf(os.Stdin))
		case unix.SIGTSTP: // keys go inside
		default:
			joined.Signal(arrived.Number, false)
		}
	})
	_ = joined.Terminal.SetReadDeadline(time.Now().Add(drainTime))
	<-read
	return end, err
}

// joinOnStreams gives the command the caller's streams. A terminal among them stays
// outside: what comes from it and goes to it is copied.
func joinOnStreams(found target, joining spawn.Joining, signals <-chan caller.Signal) (control.End, error) {
	files := [3]*os.File{os.Stdin, os.Stdout, os.Stderr}
	var inside, outside []*os.File // ends of pipes
	var reading sync.WaitGroup
	defer func() {
		for _, file := range append(inside, outside...) {
			file.Close()
		}
	}()
	var typed *keys
	defer func() {
		if typed != nil {
			typed.Stop()
		}
	}()
	var outputs []*os.File
	for i, file := range files {
		if !isTerminal(file) {
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			return control.End{}, fmt.Errorf("make a pipe: %w", err)
		}
		if i == 0 {
			files[i], inside, outside = r, append(inside, r), append(outside, w)
			if typed, err = copyKeys(w, false); err != nil {
				return control.End{}, fmt.Errorf("read terminal: %w", err)
			}
			continue
		}
		files[i], inside, outside, outputs = w, append(inside, w), append(outside, r), append(outputs, r)
		reading.Go(func() { copyOutput(file, r) })
	}
	for _, file := range inside {
		file.Fd() // into blocking mode, as programs expect
	}
	joining.Files = &files
	joined, err := found.supervisor.Join(found.sandbox.ID, joining)
	for _, file := range inside {
		file.Close()
	}
	inside = nil
	var end control.End
	if err == nil {
		defer joined.Close()
		end, err = waitOnStreams(joined, signals, false)
	}
	for _, file := range outputs {
		_ = file.SetReadDeadline(time.Now().Add(drainTime))
	}
	reading.Wait()
	return end, err
}

// waitOnStreams waits for the end of a command that has no terminal. Its process
// group gets the caller's signals, if whole is set, and otherwise those of the
// terminal alone.
func waitOnStreams(joined *control.Joined, signals <-chan caller.Signal, whole bool) (control.End, error) {
	return waitForJoined(joined, signals, func(arrived caller.Signal) {
		switch arrived.Number {
		case unix.SIGTSTP:
			joined.Signal(unix.SIGSTOP, true)
			_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
		case unix.SIGCONT:
			joined.Signal(unix.SIGCONT, true)
		case unix.SIGWINCH:
		default:
			joined.Signal(arrived.Number, whole || arrived.FromTerminal)
		}
	})
}

// waitForJoined waits for the command's end, and handles signals meanwhile.
func waitForJoined(
	joined *control.Joined, signals <-chan caller.Signal, handle func(caller.Signal),
) (control.End, error) {
	type result struct {
		end control.End
		err error
	}
	ended := make(chan result, 1)
	go func() {
		end, err := joined.Wait()
		ended <- result{end, err}
	}()
	for {
		select {
		case arrived := <-signals:
			handle(arrived)
		case r := <-ended:
			return r.end, r.err
		}
	}
}

// copyOutput copies until everybody inside has closed the file, or nothing has come
// for a moment once it has a deadline.
func copyOutput(to io.Writer, from *os.File) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func sizeOf(terminal *os.File) spawn.Size {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return spawn.Size{}
	}
	return spawn.Size{Cols: int(size.Col), Rows: int(size.Row)}
}

func setTerminalSize(terminal *os.File, size spawn.Size) {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		cells := unix.Winsize{Col: uint16(size.Cols), Row: uint16(size.Rows)}
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &cells)
	})
}
