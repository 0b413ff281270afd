package spawn

import (
	"context"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// Background is a program without a terminal: its streams are files of the
// caller's, such as pipes.
type Background struct {
	running *running
	done    chan struct{} // closed once the fields below are set
	left    func()        // called once the program has ended; nil outside a group
	exit    Exit
	err     error
}

// Background starts a program with three streams. It ignores Size, NoInput and
// FlowControl of the request. The caller closes the files once it returns. On an
// error, which is an *Error, no process is left running.
func (s *Spawner) Background(ctx context.Context, request Request, files [3]*os.File) (*Background, error) {
	if err := request.Check(); err != nil {
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

func (b *Background) await() {
	defer close(b.done)
	b.exit, b.err = b.running.end(ending{
		await: func() Exit { return waitFor(b.running.process) },
		leaderEnded: func(Exit) {
			if b.left != nil {
				b.left()
			}
		},
		drain: func() {}, // the caller reads the output
	})
}

// Terminal is the master of the terminal that a program of a group was given; nil
// if it was given streams. GiveBack closes it.
func (b *Background) Terminal() *os.File { return b.running.master }

// GiveBack says that nobody else reads the terminal any more. What has it open in
// the background can still print. It must not be called before Done is closed.
func (b *Background) GiveBack() {
	if b.running.master == nil {
		return
	}
	if c, joined := b.running.group.(*call); joined && isOpen(b.running.master) {
		c.shared.keepReading(b.running.master)
		return
	}
	b.running.master.Close()
}

// ReadOn reads pipes to which what a program has left in its group still prints, and
// drops that: without a reader these processes would fail. It returns at once, and
// closes the files once nobody prints there any more, or the group has ended. Give
// it no file that another one reads.
func (b *Background) ReadOn(files []*os.File) {
	for _, file := range files {
		if c, joined := b.running.group.(*call); joined && isOpen(file) {
			c.shared.keepReading(file)
			continue
		}
		file.Close()
	}
}

// PID is the program's process id.
func (b *Background) PID() int { return b.running.process.PID() }

// Signal sends a signal to the program, or to its whole process group. It has no
// effect after its end.
func (b *Background) Signal(signal syscall.Signal, group bool) {
	if !group {
		_ = b.running.process.Signal(signal)
		return
	}
	if b.running.process.Signal(0) == nil { // it was not reaped
		_ = unix.Kill(-b.PID(), signal)
	}
}

// Kill ends every process of the session, and returns once Done is closed. In a
// group these are the processes of the program.
func (b *Background) Kill() {
	if c, joined := b.running.group.(*call); joined {
		c.close()
	}
	_ = b.running.kill() // Exit has the error
	<-b.done
}

// Done is closed when the session has ended.
func (b *Background) Done() <-chan struct{} { return b.done }

// Exit says how the program ended. An error means that some processes could not
// be killed. It must not be called before Done is closed; nor must Alarms,
// Findings and Limits.
func (b *Background) Exit() (Exit, error) { return b.exit, b.err }

// GroupEnded reports whether the program's group has ended, and the program with
// it if it still ran. A group that ends because nothing runs in it has ended no
// program. It must not be called before Done is closed.
func (b *Background) GroupEnded() bool {
	c, joined := b.running.group.(*call)
	return joined && c.shared.endedAll()
}

// Alarms are what happened to protected paths.
func (b *Background) Alarms() []Alarm { return b.running.alarms }

// Limits are those that the program has reached, as far as the kernel tells.
func (b *Background) Limits() []Reached { return b.running.limits.list() }

// Findings are the files that changed while the program ran and that programs
// outside the sandbox act on.
func (b *Background) Findings() []Finding { return b.running.protection.reviewed() }

// Outcome says what the program got, as opposed to what the request asked for.
func (b *Background) Outcome() Outcome { return b.running.outcome }

// Denials are what the program was refused, each with its total count; missed
// counts those that did not fit into memory. It may be called at any time.
func (b *Background) Denials() (list []Denial, missed int) { return b.running.refused() }
