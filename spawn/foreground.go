//go:build unix

package spawn

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/caller"
)

// Foreground is a program that runs on the caller's own terminal.
type Foreground struct {
	running *running
	signals <-chan caller.Signal // caught since before the start
	modes   caller.Modes         // before the start
	// resuming is true from the moment this process stops with the program until
	// the signal that has continued it was taken.
	resuming atomic.Bool
}

// Prepared is the start of a program in the foreground whose request is not
// known yet. Call either Start or Drop, once.
type Prepared struct {
	spawner *Spawner
	stage   *standbyStage // nil if none could be started
}

// Prepare starts a stage for a program that Prepared.Start will start, so that
// the stage is ready once the caller knows the policy. The stage has the
// caller's streams, session and process group. Until Prepared.Start, signals do
// what they always do: nothing of the user's runs yet, and if one ends this
// process, the stage ends, too.
func (s *Spawner) Prepare() *Prepared {
	p := &Prepared{spawner: s}
	var err error
	if p.stage, err = s.prepare(); err != nil {
		// Start starts a stage of its own, and reports what is wrong.
		s.log().Debug("no stage was started in advance", "error", err)
	}
	return p
}

// Start starts the program with the caller's own streams, session and process
// group. On an error, which is an *Error, no process is left running. It ignores
// Size, NoInput and FlowControl of the request.
func (p *Prepared) Start(ctx context.Context, request Request) (*Foreground, error) {
	if err := request.Check(); err != nil {
		p.Drop()
		return nil, err
	}
	request.foreground = true
	// Signals are caught before the start: one that came earlier would end this
	// process and leave the program.
	//
	// The terminal sends a key's signal to the whole foreground process group,
	// so the program has it already. Here it must not kill this process. It must
	// not stop it either: await does that once the program has stopped, and two
	// stops would need two continuations. A signal that another process sends is
	// passed on.
	modes := caller.ModesNow()
	signals, stop := caller.Catch()
	running, err := p.spawner.start(ctx, request, callersStreams, p.stage)
	for _, file := range p.spawner.Inherited {
		file.Close() // or whoever waits for the program to close it waits for this process
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &Foreground{running: running, signals: signals, modes: modes}, nil
}

// Drop ends the stage.
func (p *Prepared) Drop() {
	if p.stage != nil {
		p.spawner.drop(p.stage)
	}
}

// prepare makes a group, and has a stage with the caller's streams started in
// it.
func (s *Spawner) prepare() (*standbyStage, error) {
	group, err := s.Tracker.NewGroup("foreground")
	if err != nil {
		return nil, err
	}
	inDomain := useSignalDomain(group)
	target := platform.Target{Confinement: s.Backend.Likely(), Start: group.Start, Inherited: s.Inherited}
	if _, _, err := callersStreams(&target, Request{}); err != nil {
		s.abandon(group)
		return nil, err
	}
	started := sync.OnceValues(func() (*platform.Standby, error) { return platform.StartStage(s.Backend, target) })
	go started()
	return &standbyStage{group: group, started: started, key: target.Confinement.StandbyKey, inDomain: inDomain}, nil
}

// Foreground starts a program as Prepare and Prepared.Start do.
func (s *Spawner) Foreground(ctx context.Context, request Request) (*Foreground, error) {
	return s.Prepare().Start(ctx, request)
}

// PID is the program's process id.
func (f *Foreground) PID() int { return f.running.process.PID() }

// Outcome says what the program got, as opposed to what the request asked for.
func (f *Foreground) Outcome() Outcome { return f.running.outcome }

// Alarms are what happened to protected paths. It must not be called before
// Wait has returned.
func (f *Foreground) Alarms() []Alarm { return f.running.alarms }

// Limits are those that the program has reached, as far as the kernel tells. It
// must not be called before Wait has returned.
func (f *Foreground) Limits() []Reached { return f.running.limits.list() }

// Denials are what the program was refused, each with its total count; missed
// counts those that did not fit into memory. It may be called at any time.
func (f *Foreground) Denials() (list []Denial, missed int) { return f.running.refused() }

// Findings are the files that changed while the program ran and that programs
// outside the sandbox act on. It must not be called before Wait has returned.
func (f *Foreground) Findings() []Finding { return f.running.protection.reviewed() }

// Follow has an observer told what happens to the program, until Wait returns.
// It must be called once at most, and before Wait.
func (f *Foreground) Follow(observer Observer) {
	f.running.deliver(observer, true)
}

// Wait passes signals on, stops when the program stops, kills what the program
// leaves behind, restores the modes of the standard streams, and returns how the
// program ended. An error means that some processes could not be killed.
//
// Signals stay caught afterwards: the interrupt that ended the program may
// reach this process later, and would end it before it passed the exit status
// on.
func (f *Foreground) Wait() (Exit, error) {
	ended := make(chan struct{})
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		for {
			select {
			case arrived := <-f.signals:
				f.passOn(arrived)
			case <-ended:
				return
			}
		}
	}()
	defer f.modes.Restore()
	return f.running.end(ending{
		await: f.await,
		leaderEnded: func(Exit) {
			close(ended)
			<-forwarded
		},
		drain: func() {}, // the output is the caller's
	})
}

// passOn sends the program a signal that it does not have yet. If a terminal
// hangs up, its session's leader gets the signal alone.
func (f *Foreground) passOn(arrived caller.Signal) {
	if arrived.FromTerminal && arrived.Number != unix.SIGHUP ||
		arrived.Number == unix.SIGCONT && f.resuming.CompareAndSwap(true, false) {
		return
	}
	_ = f.running.process.Signal(arrived.Number)
}

// await waits for the program's end. It also stops with the program: otherwise
// the caller of a shell that suspends itself would wait for ever.
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

// stopWithProgram stops this process, and continues the program once this
// process is continued. A shell has a foreground process group of its own, and
// gets the terminal back, which the caller has given to this process's group.
func (f *Foreground) stopWithProgram() {
	pid := f.running.process.PID()
	// kill(2) may return before this process stops, because another thread may
	// take the signal. So wait for the continuation itself.
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	f.resuming.Store(true)
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	<-continued
	if group, err := unix.Getpgid(pid); err == nil && group != unix.Getpgrp() {
		// This process is in the foreground, so the call raises no SIGTTOU.
		// Without a terminal it fails, which does no harm.
		_ = unix.IoctlSetPointerInt(int(os.Stdin.Fd()), unix.TIOCSPGRP, group)
		_ = unix.Kill(-group, unix.SIGCONT)
		return
	}
	_ = f.running.process.Signal(unix.SIGCONT)
}

// Pause stops every process of the session until resume is called; see
// lifecycle.Pausable.
func (f *Foreground) Pause(ctx context.Context) (resume func() error, err error) {
	group, can := f.running.group.(lifecycle.Pausable)
	if !can {
		return nil, fmt.Errorf("pause session: processes held by %s cannot be stopped together",
			f.running.outcome.Tracking.Mechanism)
	}
	return group.Pause(ctx)
}
