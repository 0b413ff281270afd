package handshake

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// CloseOnExec marks every descriptor from first on, so that exec keeps only the
// standard streams.
func CloseOnExec(first int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	const most = 10240 // OPEN_MAX of <sys/syslimits.h>; the limit itself may be infinite
	for fd := first; fd < int(min(limit.Cur, most)); fd++ {
		unix.CloseOnExec(fd)
	}
	return nil
}

// resetSignals gives every signal its default action, but for those that are to
// be ignored. execve(2) resets handlers
// but keeps ignored signals, which an editor started under nohup would pass on
// to every shell. Handling every signal turns the ignored ones into handled
// ones, which execve then resets.
func resetSignals(ignored []int) error {
	signal.Notify(make(chan os.Signal, 1))
	for _, number := range ignored {
		signal.Ignore(unix.Signal(number))
	}
	return nil
}
