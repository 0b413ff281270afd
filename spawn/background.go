package spawn

import (
	"context"
	"os"
	"sync"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// Background is a program without a terminal: its streams are files of the
// caller's, such as pipes.
type Background struct {
	running *running
	done    chan struct{} // closed once the fields below are set
	exit    Exit
	err     error
	alarms  []Alarm

	mu       sync.Mutex // held while processes are killed
	released bool
}

// Background starts a program with three streams. It ignores Size, NoInput and
// FlowControl of the request. The caller closes the files once it returns. On an
// error, which is an *Error, no process is left running.
func (s *Spawner) Background(ctx context.Context, request Request, files [3]*os.File) (*Background, error) {
	if err := request.check(); err != nil {
		return nil, err
	}
	given := func(target *platform.Target, _ Request) (*os.File, func(), error) {
		target.Streams = files
		// Keys that are typed into the caller's terminal are none of its.
		target.Attr = &syscall.SysProcAttr{Setsid: true}
		return nil, func() {}, nil
	}
	running, err := s.start(ctx, request, given, nil)
	if err != nil {
		return nil, err
	}
	b := &Background{running: running, done: make(chan struct{})}
	go b.await()
	return b, nil
}

// await reaps the leader, and ends what it left behind.
func (b *Background) await() {
	defer close(b.done)
	ended := make(chan struct{})
	var reaping sync.WaitGroup
	reaping.Go(func() { reapTraced(ended, b.running.process.PID()) })
	b.exit = waitFor(b.running.process)
	close(ended)
	reaping.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = b.kill()
	b.running.protection.end()
	for alarm, ok := b.running.protection.next(); ok; alarm, ok = b.running.protection.next() {
		b.alarms = append(b.alarms, alarm)
	}
	b.running.release(b.err)
	b.running.noteEnd(b.exit, b.err != nil)
	b.released = true
}

func (b *Background) kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	_, err := b.running.kill(ctx)
	return err
}

// Kill ends every process of the session, and returns once Done is closed.
func (b *Background) Kill() {
	b.mu.Lock()
	if !b.released {
		_ = b.kill() // await tries again, and reports it
	}
	b.mu.Unlock()
	<-b.done
}

// Done is closed when the session has ended.
func (b *Background) Done() <-chan struct{} { return b.done }

// Exit says how the program ended. An error means that some processes could not
// be killed. It must not be called before Done is closed; nor must Alarms and
// Findings.
func (b *Background) Exit() (Exit, error) { return b.exit, b.err }

// Alarms are what happened to protected paths.
func (b *Background) Alarms() []Alarm { return b.alarms }

// Findings are the files that changed while the program ran and that programs
// outside the sandbox act on.
func (b *Background) Findings() []Finding { return b.running.protection.reviewed() }

// Outcome says what the program got, as opposed to what the request asked for.
func (b *Background) Outcome() Outcome { return b.running.outcome }

// Denials are what the program was refused, each with its total count; missed
// counts those that did not fit into memory. It may be called at any time.
func (b *Background) Denials() (list []Denial, missed int) { return b.running.denials.all() }
