package caller

import (
	"fmt"
	"os/signal"
	"slices"

	"golang.org/x/sys/unix"
)

// plain are the signals whose default action Go's runtime leaves alone.
var plain = []unix.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGKILL, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM,
}

// defaultAction gives a signal its default action, if Go's runtime can.
func defaultAction(number unix.Signal) error {
	if !slices.Contains(plain, number) {
		return fmt.Errorf("reset %s: the runtime handles it", unix.SignalName(number))
	}
	signal.Reset(number)
	return nil
}
