//go:build linux && (amd64 || arm64)

package caller

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Package signal does not say who has sent a signal, and the kernel tells only
// the handler. So note takes the place of the handler of Go's runtime: it
// writes the beginning of siginfo_t into a pipe, and goes on with that handler.

// note is a handler for sigaction(2), not a function that Go may call.
func note() //nolint:unused // noteAddress names it

// noteAddress is the address of note itself; reflect would give a wrapper's.
func noteAddress() uintptr

var (
	// runtimeHandler is the handler of Go's runtime; the same for all signals.
	runtimeHandler uintptr
	// noteFD is the pipe's end to write to.
	noteFD int32 //nolint:unused // note reads it
)

// sizeNoted is how much of siginfo_t is written: si_signo, si_errno and si_code.
const sizeNoted = 12

// sentByKernel is SI_KERNEL, which a terminal's signals have. Those of alarm(2)
// have it too, so it says nothing of others than ofTerminals.
const sentByKernel = 0x80

// ofTerminals are the signals that a terminal sends (tty_jobctrl.c, n_tty.c).
var ofTerminals = []unix.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGWINCH, unix.SIGHUP, unix.SIGCONT}

// sigaction is struct sigaction of rt_sigaction(2).
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

var origins origin

// origin finds out who has sent a signal.
type origin struct {
	listeners
	handling sync.Mutex // guards the fields below, runtimeHandler, and the signals' handlers
	opened   bool
	failed   error
}

// join has signals told to a channel, and package signal send them to caught. None
// is lost meanwhile that would end this process: the runtime handles those from the
// start, so note can take its place before package signal keeps this process alive.
func (o *origin) join(numbers []os.Signal, caught chan os.Signal, to chan<- Signal) (leave func()) {
	leave = o.add(to)
	o.prepare(numbers)
	signal.Notify(caught, numbers...)
	if o.handle(numbers) == nil {
		return leave
	}
	leave()
	return guess(caught, to)
}

// prepare installs the handler for those signals that the runtime handles.
func (o *origin) prepare(numbers []os.Signal) {
	var handled []os.Signal
	for _, number := range numbers {
		var now sigaction
		if change(number.(unix.Signal), nil, &now) == nil && now.handler > ignore {
			handled = append(handled, number)
		}
	}
	_ = o.handle(handled) // which says it again
}

// handle installs the handler for signals. After an error it installs no more.
func (o *origin) handle(numbers []os.Signal) error {
	o.handling.Lock()
	defer o.handling.Unlock()
	if !o.opened {
		o.opened, o.failed = true, o.open()
	}
	for _, number := range numbers {
		if o.failed == nil {
			o.failed = o.install(number.(unix.Signal))
		}
	}
	return o.failed
}

// open makes the pipe, and passes on what comes out of it.
func (o *origin) open() error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return fmt.Errorf("make a pipe for signals: %w", err)
	}
	noteFD = int32(ends[1])
	reader := os.NewFile(uintptr(ends[0]), "signals")
	go func() {
		var noted [sizeNoted]byte
		for {
			// One write is one signal: a pipe keeps those below PIPE_BUF whole.
			if n, err := reader.Read(noted[:]); err != nil || n != len(noted) {
				return
			}
			number := unix.Signal(binary.NativeEndian.Uint32(noted[:]))
			byKernel := int32(binary.NativeEndian.Uint32(noted[8:])) == sentByKernel
			o.tell(Signal{Number: number, FromTerminal: byKernel && slices.Contains(ofTerminals, number)})
		}
	}()
	return nil
}

// install makes note a signal's handler.
func (o *origin) install(number unix.Signal) error {
	var now sigaction
	if err := change(number, nil, &now); err != nil {
		return err
	}
	if now.handler == noteAddress() {
		return nil
	}
	if now.handler <= ignore || runtimeHandler != 0 && runtimeHandler != now.handler {
		return fmt.Errorf("handle %s: the runtime has no handler of its own", unix.SignalName(number))
	}
	runtimeHandler = now.handler
	now.handler = noteAddress()
	return change(number, &now, nil)
}

// ignore is SIG_IGN, and SIG_DFL is 0: no other handler is below.
const ignore = 1

func change(number unix.Signal, action, before *sigaction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(number), uintptr(unsafe.Pointer(action)),
		uintptr(unsafe.Pointer(before)), unsafe.Sizeof(action.mask), 0, 0)
	if errno != 0 {
		return fmt.Errorf("handle %s: %w", unix.SignalName(number), errno)
	}
	return nil
}

// listeners are the channels of Catch.
type listeners struct {
	mu   sync.Mutex
	next int
	all  map[int]chan<- Signal
}

// add adds a channel, and returns a function that removes it.
func (l *listeners) add(channel chan<- Signal) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[int]chan<- Signal{}
	}
	number := l.next
	l.next++
	l.all[number] = channel
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, number)
	}
}

// tell sends a signal to all channels, as package signal does: nobody is waited
// for.
func (l *listeners) tell(arrived Signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, channel := range l.all {
		select {
		case channel <- arrived:
		default:
		}
	}
}
