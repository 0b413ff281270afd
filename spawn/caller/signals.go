//go:build unix

package caller

import (
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Signal is a signal that has arrived at this process.
type Signal struct {
	Number unix.Signal
	// FromTerminal says that a terminal has sent it, and so to every process of
	// its foreground process group.
	FromTerminal bool
}

// passed are the signals that Catch catches: those that people and programs
// send to a program, except for the faults of a process itself.
var passed = []unix.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGTERM,
	unix.SIGCONT, unix.SIGTSTP, unix.SIGWINCH,
}

// unheard are the signals of passed that Go's runtime drops until somebody asks
// for them (sigtable in its package runtime), where most programs end by them.
var unheard = []os.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM}

// early ends the wait for signals before Catch, if there is one.
var early = func() {}

// EndEarly lets every signal of Catch end this process until Catch is called, as
// it ends other programs. It is called once, before all that takes time: what the
// caller has set an alarm for may come to nothing else.
func EndEarly() {
	arrived, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(arrived, unheard...)
	go func() {
		defer close(ended)
		for number := range arrived {
			EndBy(number.(unix.Signal))
		}
	}()
	early = sync.OnceFunc(func() {
		signal.Stop(arrived)
		close(arrived)
		<-ended
	})
}

// mayBeIgnored are the signals of which Go's runtime leaves it to the caller
// whether they are ignored.
var mayBeIgnored = []unix.Signal{unix.SIGHUP, unix.SIGINT}

// Ignored are the signals that the caller has this process ignore, as nohup(1)
// does. Go's runtime tells that only of SIGHUP and SIGINT.
func Ignored() (numbers []int) {
	for _, number := range mayBeIgnored {
		if signal.Ignored(number) {
			numbers = append(numbers, int(number))
		}
	}
	return numbers
}

// maxWaiting bounds the signals that nobody has taken yet.
const maxWaiting = 64

// Catch has signals sent to the channel from now on instead of their usual
// effect, and of that of EndEarly, until stop is called. Those that the caller has
// this process ignore stay ignored. It may be called several times; each channel
// gets all signals.
func Catch() (signals <-chan Signal, stop func()) {
	channel := make(chan Signal, maxWaiting)
	var numbers []os.Signal
	for _, number := range passed {
		if !signal.Ignored(number) {
			numbers = append(numbers, number)
		}
	}
	caught := make(chan os.Signal, maxWaiting)
	leave := origins.join(numbers, caught, channel)
	early() // first: none is lost between the two
	return channel, func() {
		signal.Stop(caught)
		leave()
	}
}

// endTimeout bounds the wait for a signal that must end this process.
const endTimeout = 5 * time.Second

// EndBy ends this process by a signal, without a core file, so that the caller
// sees what it would see of the program itself. It returns only if the signal
// ends nothing: the first process of a container has no default actions.
func EndBy(number unix.Signal) {
	if os.Getpid() == 1 || withoutCore() != nil || defaultAction(number) != nil {
		return
	}
	if unix.Kill(os.Getpid(), number) == nil {
		time.Sleep(endTimeout)
	}
}

// withoutCore keeps this process, which is not the one that failed, from
// leaving a core file.
func withoutCore() error {
	return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}
