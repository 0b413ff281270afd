package lifecycle

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// scanInterval is the longest time between two scans, if the kernel reports no
// fork.
const scanInterval = time.Second

// watchForks scans for new members whenever the kernel reports that one has
// forked, so that few are born and end between two scans. The ancestry's close
// ends that. NOTE_TRACK, by which the kernel itself followed forks, is gone
// since Mac OS X 10.5.
func watchForks(f *ancestry, log *slog.Logger) error {
	queue, err := unix.Kqueue()
	if err != nil {
		return fmt.Errorf("watch forks: %w", err)
	}
	unix.CloseOnExec(queue)
	const wake = 1
	event := unix.Kevent_t{Ident: wake, Filter: unix.EVFILT_USER, Flags: unix.EV_ADD | unix.EV_CLEAR}
	if _, err := unix.Kevent(queue, []unix.Kevent_t{event}, nil, nil); err != nil {
		unix.Close(queue)
		return fmt.Errorf("watch forks: %w", err)
	}
	stop := make(chan struct{})
	var running sync.WaitGroup
	var once sync.Once
	f.stop = func() {
		once.Do(func() {
			close(stop)
			event.Flags, event.Fflags = 0, unix.NOTE_TRIGGER
			_, _ = unix.Kevent(queue, []unix.Kevent_t{event}, nil, nil) // if it fails, the interval ends the wait
			running.Wait()
			unix.Close(queue)
		})
	}
	running.Go(func() {
		watched := map[int]bool{}
		for {
			start := time.Now()
			if err := watchMembers(queue, f, watched); err != nil {
				log.Warn("processes that leave their session may not be found", "error", err)
			}
			// Scan at most half of the time: each scan asks about every
			// process, and a build forks thousands of times a second.
			rest := time.NewTimer(time.Since(start))
			select {
			case <-stop:
				rest.Stop()
				return
			case <-rest.C:
			}
			var events [64]unix.Kevent_t
			timeout := unix.NsecToTimespec(int64(scanInterval))
			if _, err := unix.Kevent(queue, nil, events[:], &timeout); err != nil && !errors.Is(err, unix.EINTR) {
				log.Warn("processes that leave their session may not be found", "error", err)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	return nil
}

// watchMembers scans once, and has the kernel report every member's forks. The
// report of a member's end only causes a scan.
func watchMembers(queue int, f *ancestry, watched map[int]bool) error {
	for {
		table, err := proc.OwnProcesses()
		if err != nil {
			return err
		}
		members, err := f.members(table)
		if err != nil {
			return err
		}
		for pid := range watched {
			if !members[pid] {
				delete(watched, pid)
			}
		}
		added := false
		for pid := range members {
			if watched[pid] {
				continue
			}
			event := unix.Kevent_t{
				Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_CLEAR,
				Fflags: unix.NOTE_FORK | unix.NOTE_EXIT,
			}
			_, err := unix.Kevent(queue, []unix.Kevent_t{event}, nil, nil)
			if errors.Is(err, unix.ESRCH) {
				continue // it has ended
			}
			if err != nil {
				return fmt.Errorf("watch forks of process %d: %w", pid, err)
			}
			watched[pid], added = true, true
		}
		if !added {
			return nil
		}
		// It may have forked before it was watched: scan again.
	}
}
