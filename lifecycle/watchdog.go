//go:build unix

package lifecycle

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/reserve"
)

// watchdog is a second process that ends every session if this one dies first:
// by SIGKILL, by a crash, for lack of memory. It holds one end of a socket.
// Only this process holds the other, and the kernel closes that in any case.
// The watchdog runs only while there are sessions.
type watchdog struct {
	command func() (path string, argv []string)
	log     *slog.Logger

	mu      sync.Mutex // guards the fields below
	journal string     // its path
	reader  *os.File   // the journal, opened without its lock; closed when another takes its place
	users   int
	pipe    *os.File      // a socket; nil while none is running
	process proc.Process  // the running one
	retired chan struct{} // closed once the running one was told to end
	idle    *time.Timer
	running sync.WaitGroup
	holds   bool // a file whose closing takes long; see closeThere
}

const (
	// watchdogFD is the socket's descriptor in the watchdog.
	watchdogFD = 3
	// watchdogJournalFD is the journal's.
	watchdogJournalFD = 4
	// lingering is how long a watchdog without sessions waits for the next one:
	// an agent runs one tool after another.
	lingering = 5 * time.Second
	// restartPause keeps a watchdog that always dies from being restarted in a
	// loop.
	restartPause = time.Second
	// farewell tells the watchdog to end without doing anything.
	farewell = "q"
	// watchdogThreads are enough for a watchdog: most of what it ends, it ends one
	// after another.
	watchdogThreads = 6
	// endTimeout bounds the wait for the end of a watchdog that was killed.
	endTimeout = 2 * time.Second
)

// follow tells the watchdog that the journal is another file now. Both files
// must list the same.
func (w *watchdog) follow(path string, reader *os.File) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal, w.reader = path, reader
	if w.pipe == nil {
		return
	}
	if err := sendJournal(w.pipe, path, reader); err != nil {
		_ = w.process.Signal(unix.SIGKILL) // it does not read; the next one gets the file at its start
	}
}

// use keeps a watchdog that runs until release was called as often as use.
func (w *watchdog) use() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle != nil {
		w.idle.Stop()
		w.idle = nil
	}
	w.users++
}

// guard starts a watchdog, unless one runs. It is called after use.
func (w *watchdog) guard() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe != nil {
		return nil
	}
	return w.start()
}

func (w *watchdog) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users--; w.users == 0 {
		w.idle = time.AfterFunc(lingering, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.users == 0 {
				w.retire()
			}
		})
	}
}

// close ends the watchdog and waits for its end. Nothing is left for it to do.
// After a short command it may not even have started to read, so it is killed.
func (w *watchdog) close() {
	w.mu.Lock()
	if w.idle != nil {
		w.idle.Stop()
	}
	if w.pipe != nil {
		w.retire()
		_ = w.process.Signal(unix.SIGKILL)
	}
	holds := w.holds
	w.mu.Unlock()
	if holds {
		return
	}
	// A process can outlast SIGKILL in an uninterruptible system call.
	_ = finishes(endTimeout, func() error {
		w.running.Wait()
		return nil
	})
}

// leave lets the watchdog carry out the journal, without waiting for it.
func (w *watchdog) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle != nil {
		w.idle.Stop()
	}
	if w.pipe != nil {
		close(w.retired)
		w.pipe.Close()
		w.pipe = nil
	}
}

// retire sends farewell. The lock is held.
func (w *watchdog) retire() {
	if w.pipe == nil {
		return
	}
	close(w.retired)
	_ = sendNow(w.pipe, []byte(farewell), nil)
	w.pipe.Close()
	w.pipe = nil
}

// start runs a watchdog. The lock is held.
func (w *watchdog) start() error {
	theirs, ours, err := watchdogSocket()
	if err != nil {
		return fmt.Errorf("start watchdog: %w", err)
	}
	path, argv := w.command()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		ours.Close()
		theirs.Close()
		return fmt.Errorf("start watchdog: %w", err)
	}
	process, err := proc.Start(path, append(argv, w.journal), &os.ProcAttr{
		Files: []*os.File{null, null, os.Stderr, theirs, w.reader},
		Env:   reserve.SmallRuntime,
		// A session of its own protects it from signals to our process group
		// and from the hang-up of a terminal.
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	null.Close()
	theirs.Close()
	if err != nil {
		ours.Close()
		return fmt.Errorf("start watchdog: %w", err)
	}
	w.pipe, w.process, w.retired = ours, process, make(chan struct{})
	retired := w.retired
	w.running.Go(func() { w.mind(process, retired) })
	return nil
}

// mind waits for the watchdog's death and starts another one.
func (w *watchdog) mind(process proc.Process, retired chan struct{}) {
	status, err := process.Wait(false)
	select {
	case <-retired:
		return
	default:
	}
	w.log.Error("the watchdog has died and is restarted; until then, sessions may outlive a crash",
		"exit_status", status.ExitStatus(), "signal", status.Signal(), "error", err)
	select {
	case <-retired:
		return
	case <-time.After(restartPause):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe == nil || w.retired != retired {
		return
	}
	w.pipe.Close()
	w.pipe = nil
	if err := w.start(); err != nil {
		w.log.Error("cannot start a watchdog: sessions may outlive a crash", "error", err)
	}
}

// watchdogTimeout bounds the clean-up. Processes in uninterruptible system
// calls are left to the next sidecar's sweep.
const watchdogTimeout = time.Minute

// inheritsJournal reports whether the sidecar has passed its journal.
// Descriptors that the Go runtime has opened are close-on-exec.
func inheritsJournal() bool {
	var stat unix.Stat_t
	flags, err := unix.FcntlInt(watchdogJournalFD, unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0 && unix.Fstat(watchdogJournalFD, &stat) == nil &&
		stat.Mode&unix.S_IFMT == unix.S_IFREG
}

// RunWatchdog is the watchdog's whole life; it returns the exit status. Its
// argument is the journal's path.
func RunWatchdog(path string) int {
	// It must outlast everything but SIGKILL. Confined sessions cannot signal
	// it (Landlock ABI 6).
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN,
		unix.SIGTTOU)
	complain := func(err error) int {
		fmt.Fprintf(os.Stderr, "sandbox-sidecar: watchdog: %v\n", err)
		return 1
	}
	// It holds the journal open, because somebody may remove the state
	// directory while the sidecar lives. What the journal lists still has to be
	// ended.
	held := heldJournal{path: path}
	if inheritsJournal() {
		held.file = os.NewFile(watchdogJournalFD, "journal")
	} else {
		var err error
		if held.file, err = journal.Open(path); err != nil {
			return complain(err)
		}
	}
	unix.CloseOnExec(watchdogFD)
	unix.CloseOnExec(int(held.file.Fd()))
	proc.ReserveThreads(watchdogThreads)
	if held.listen(watchdogFD) {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), watchdogTimeout)
	defer cancel()
	if err := journal.Lock(held.file, 0); err != nil {
		return complain(err)
	}
	if err := journal.Settle(ctx, held.file, held.path, enders); err != nil {
		return complain(err)
	}
	return 0
}
