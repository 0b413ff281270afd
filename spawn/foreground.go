//go:build unix

package spawn

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
)

// Foreground is a program that runs on the caller's own terminal.
type Foreground struct {
	running *running
	signals chan os.Signal // those that came since before the start

	alarms   []Alarm   // set by Wait
	findings []Finding // likewise
}

// Foreground starts a program with the caller's own streams, session and
// process group. On an error, which is an *Error, nothing is left running.
// Size, NoInput and FlowControl of the request do not count.
func (s *Spawner) Foreground(ctx context.Context, request Request) (*Foreground, error) {
	if err := request.check(); err != nil {
		return nil, err
	}
	// From before the start: a signal that came first would end us and leave
	// the program.
	//
	// A key's signal reaches the whole foreground process group, so the program
	// has it already; here it must only not kill us. It must not stop us
	// either: that is await's to do once the program has stopped, and stopping
	// on both accounts would take two continuations. What another process sends
	// to us alone is passed on.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
	running, err := s.start(ctx, request, callersStreams)
	if err != nil {
		signal.Stop(signals)
		return nil, err
	}
	return &Foreground{running: running, signals: signals}, nil
}

// Outcome says what the program got.
func (f *Foreground) Outcome() Outcome { return f.running.outcome }

// Alarms are what happened to protected paths, and Findings what changed of all
// that programs outside act upon. They must not be called before Wait has
// returned.
func (f *Foreground) Alarms() []Alarm { return f.alarms }

// Denials are what the program was refused, each with how often in all, and
// missed counts those that were too many to be remembered. They may be called
// at any time.
func (f *Foreground) Denials() (list []Denial, missed int) { return f.running.denials.all() }

// Findings goes with Alarms.
func (f *Foreground) Findings() []Finding { return f.findings }

// Wait passes signals on, stops when the program stops, kills what the program
// leaves behind, and says how it ended. The error says that something could not
// be killed.
//
// The signals are never given back their default: a key's interrupt that has
// ended the program may reach us only afterwards, and would then end us before
// we could pass the program's status on.
func (f *Foreground) Wait() (Exit, error) {
	ended := make(chan struct{})
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		for {
			select {
			case got := <-f.signals:
				if got != os.Signal(unix.SIGINT) && got != os.Signal(unix.SIGQUIT) && got != os.Signal(unix.SIGTSTP) {
					_ = f.running.process.Signal(got.(syscall.Signal))
				}
			case <-ended:
				return
			}
		}
	}()
	var reaping sync.WaitGroup
	reaping.Go(func() { reapTraced(ended, f.running.process.PID()) })
	exit := f.await()
	close(ended)
	<-forwarded
	reaping.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	_, err := f.running.kill(ctx)
	f.findings = f.running.protection.end()
	for alarm, ok := f.running.protection.next(); ok; alarm, ok = f.running.protection.next() {
		f.alarms = append(f.alarms, alarm)
	}
	if err != nil {
		return exit, err // whoever closes the tracker tries once more, and what is left then is the next sidecar's
	}
	f.running.release(nil)
	return exit, err
}

// await waits for the program's end. A shell that suspends itself would leave
// our caller waiting for ever on a proxy that still runs.
func (f *Foreground) await() Exit {
	for {
		status, err := f.running.process.Wait(true)
		switch {
		case err != nil:
			panic(fmt.Sprintf("BUG(sandbox-sidecar): wait for program %d: %v", f.running.process.PID(), err))
		case status.Stopped():
			f.stopWithProgram()
		default:
			return exitOf(status)
		}
	}
}

// stopWithProgram stops this process too, and lets the program go on when it is
// continued itself. A shell has made a foreground process group of its own; it
// gets the terminal back, which our caller has given to our group.
func (f *Foreground) stopWithProgram() {
	pid := f.running.process.PID()
	// kill(2) may come back before the stop does, on another thread: what
	// follows must wait for the continuation itself.
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	<-continued
	if group, err := unix.Getpgid(pid); err == nil && group != unix.Getpgrp() {
		// Giving the terminal away is done from the foreground, so it raises no
		// SIGTTOU; without a terminal it fails, which is right.
		_ = unix.IoctlSetPointerInt(int(os.Stdin.Fd()), unix.TIOCSPGRP, group)
		_ = unix.Kill(-group, unix.SIGCONT)
		return
	}
	_ = f.running.process.Signal(unix.SIGCONT)
}

// Pause makes the whole session stand still until resume is called; see
// lifecycle.Pausable.
func (f *Foreground) Pause(ctx context.Context) (resume func() error, err error) {
	group, can := f.running.group.(lifecycle.Pausable)
	if !can {
		return nil, fmt.Errorf("pause session: processes held by %s cannot be stopped together",
			f.running.outcome.Tracking.Mechanism)
	}
	return group.Pause(ctx)
}
