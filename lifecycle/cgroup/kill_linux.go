package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// killCgroup kills every process in dir and below. It returns how many there
// were, once the kernel reports that none is left.
func killCgroup(ctx context.Context, dir string) (int, error) {
	events, err := os.Open(filepath.Join(dir, "cgroup.events"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // removed already
	}
	if err != nil {
		return 0, fmt.Errorf("watch cgroup: %w", err)
	}
	defer events.Close()
	populated, err := isPopulated(events)
	if err != nil || !populated {
		return 0, err
	}
	members, err := cgroupMembers(dir)
	if err != nil {
		return 0, err
	}
	if err := writeCgroup(filepath.Join(dir, "cgroup.kill"), "1"); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return 0, nil // the directory is gone too: another has killed and removed it
		}
		return len(members), freezeAndKill(ctx, dir, events)
	} else if err != nil {
		return 0, err
	}
	return len(members), awaitEmpty(ctx, dir, events)
}

// freezeAndKill replaces cgroup.kill before Linux 5.14. Frozen processes cannot
// fork, so one scan finds all of them, and SIGKILL reaches a frozen process
// (cgroup v2, Linux 5.2). The empty cgroup is thawed, as after cgroup.kill: a
// later process would be frozen forever.
func freezeAndKill(ctx context.Context, dir string, events *os.File) error {
	if err := writeCgroup(filepath.Join(dir, "cgroup.freeze"), "1"); err != nil {
		return err
	}
	for {
		members, err := cgroupMembers(dir)
		if err != nil {
			return err
		}
		for _, pid := range members {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		// Freezing takes a moment: until all are frozen, a member may fork once
		// more.
		slice, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		err = awaitEmpty(slice, dir, events)
		cancel()
		switch {
		case err == nil:
			return ignoreGone(writeCgroup(filepath.Join(dir, "cgroup.freeze"), "0"))
		case ctx.Err() != nil:
			return err
		}
	}
}

// membersPause is how long awaitEmpty waits before it lists the members: that
// costs time, and most are gone sooner.
const membersPause = 60 * time.Millisecond

// awaitEmpty waits for "populated 0". The kernel raises POLLPRI on
// cgroup.events when it changes (cgroups(7)).
func awaitEmpty(ctx context.Context, dir string, events *os.File) error {
	for start := time.Now(); ; {
		populated, err := isPopulated(events)
		if err != nil || !populated {
			return err
		}
		var members []int
		if ctx.Err() != nil || time.Since(start) > membersPause {
			members, _ = cgroupMembers(dir)
		}
		if ctx.Err() != nil || proc.AllStuck(members) {
			return fmt.Errorf("kill cgroup %s: %w", dir, &proc.Survivors{PIDs: members})
		}
		// The timeout bounds how late the end of ctx is noticed; it delays
		// nothing else.
		fds := []unix.PollFd{{Fd: int32(events.Fd()), Events: unix.POLLPRI}}
		if _, err := unix.Poll(fds, 20); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("watch cgroup: %w", err)
		}
	}
}

func isPopulated(events *os.File) (bool, error) {
	var buf [256]byte
	n, err := unix.Pread(int(events.Fd()), buf[:], 0)
	if errors.Is(err, unix.ENODEV) {
		return false, nil // removed meanwhile
	}
	if err != nil {
		return false, fmt.Errorf("read cgroup.events: %w", err)
	}
	return bytes.Contains(buf[:n], []byte("populated 1")), nil
}

// cgroupMembers lists the processes in dir and in the cgroups below it, which
// an unsandboxed session may have made.
func cgroupMembers(dir string) ([]int, error) {
	var members []int
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return ignoreGone(err)
		}
		procs, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if errors.Is(err, unix.EOPNOTSUPP) {
			return nil // a threaded cgroup: an ancestor lists its processes
		}
		for line := range strings.Lines(string(procs)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
				members = append(members, pid)
			}
		}
		return ignoreGone(err)
	})
	if err != nil {
		return nil, fmt.Errorf("list cgroup members: %w", err)
	}
	return members, nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// removeRetry bounds the wait for the kernel to release a cgroup whose last
// process has just died.
const removeRetry = time.Second

// removeCgroup removes dir and the cgroups below it, deepest first.
func removeCgroup(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return ignoreGone(err)
	})
	if err != nil {
		return fmt.Errorf("remove cgroup: %w", err)
	}
	deadline := time.Now().Add(removeRetry)
	for i := len(dirs) - 1; i >= 0; i-- {
		for {
			err := unix.Rmdir(dirs[i])
			if err == nil || errors.Is(err, unix.ENOENT) {
				break
			}
			if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
				return fmt.Errorf("remove cgroup %s: %w", dirs[i], err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// writeCgroup writes to a file of the cgroup file system. It never creates one:
// an ordinary directory beside a v2 mount would take the file and do nothing.
func writeCgroup(path, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open cgroup file: %w", err)
	}
	defer file.Close()
	if _, err := file.WriteString(value); err != nil {
		return fmt.Errorf("write cgroup file: %w", err)
	}
	return nil
}
