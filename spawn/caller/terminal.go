//go:build unix

package caller

import (
	"os"
	"os/signal"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// streams are the numbers of the standard streams.
var streams = []int{0, 1, 2}

// lastingFlags are those of an open file that a program can leave to others who
// have the same one open.
const lastingFlags = unix.O_NONBLOCK | unix.O_ASYNC

// Modes are the modes of the standard streams and of their terminals at one
// time.
type Modes struct {
	flags     map[int]int // by stream
	terminals []terminal
}

// terminal is a terminal among the standard streams.
type terminal struct {
	stream    int
	streams   [3]bool // all streams that are this terminal
	attrs     unix.Termios
	group     int // in the foreground; 0 if it is not this process's terminal
	exclusive bool
}

// ModesNow reads the modes.
func ModesNow() Modes {
	m := Modes{flags: map[int]int{}}
	var known []unix.Stat_t // of terminals
	for _, stream := range streams {
		if flags, err := unix.FcntlInt(uintptr(stream), unix.F_GETFL, 0); err == nil {
			m.flags[stream] = flags
		}
		attrs, err := unix.IoctlGetTermios(stream, getTermios)
		var status unix.Stat_t
		isSame := func(other unix.Stat_t) bool { return other.Rdev == status.Rdev }
		if err != nil || unix.Fstat(stream, &status) != nil {
			continue
		}
		i := slices.IndexFunc(known, isSame)
		if i < 0 {
			group, _ := unix.IoctlGetInt(stream, unix.TIOCGPGRP)
			i, known = len(known), append(known, status)
			m.terminals = append(m.terminals, terminal{
				stream: stream, attrs: *attrs, group: group, exclusive: isExclusive(stream),
			})
		}
		m.terminals[i].streams[stream] = true
	}
	return m
}

// Restore gives back what has changed since. Call it once nothing of the
// program runs any more. It changes nothing if another program of the same
// pipeline runs, which may have changed that itself, or if the terminal is
// another process group's by now.
func (m Modes) Restore() {
	if !m.differ() || hasSiblings() {
		return
	}
	// Whoever sets a terminal from the background is stopped otherwise.
	signal.Ignore(unix.SIGTTOU)
	defer signal.Reset(unix.SIGTTOU)
	var others [3]bool // streams that are a terminal of another process group
	for _, t := range m.terminals {
		if ours := t.restore(); !ours {
			for stream, is := range t.streams {
				others[stream] = others[stream] || is
			}
		}
	}
	for stream, before := range m.flags {
		now, err := unix.FcntlInt(uintptr(stream), unix.F_GETFL, 0)
		if err == nil && !others[stream] && (now^before)&lastingFlags != 0 {
			_, _ = unix.FcntlInt(uintptr(stream), unix.F_SETFL, now&^lastingFlags|before&lastingFlags)
		}
	}
}

// differ reports whether anything has changed.
func (m Modes) differ() bool {
	now := ModesNow()
	for stream, before := range m.flags {
		if (now.flags[stream]^before)&lastingFlags != 0 {
			return true
		}
	}
	return !slices.Equal(now.terminals, m.terminals)
}

// restore gives a terminal what it had. A shell inside that was killed leaves
// its own process group in the foreground, which no process has any more. ours is
// false if the terminal is another process group's by now.
func (t terminal) restore() (ours bool) {
	group, err := unix.IoctlGetInt(t.stream, unix.TIOCGPGRP)
	if err == nil && group != t.group && t.group == unix.Getpgrp() {
		if unix.Kill(-group, 0) != unix.ESRCH {
			return false
		}
		_ = unix.IoctlSetPointerInt(t.stream, unix.TIOCSPGRP, t.group)
	}
	if t.group != 0 && t.group != unix.Getpgrp() {
		return false // this process was in the background
	}
	if !t.exclusive && isExclusive(t.stream) {
		_ = unix.IoctlSetInt(t.stream, unix.TIOCNXCL, 0)
	}
	if now, err := unix.IoctlGetTermios(t.stream, getTermios); err == nil && *now != t.attrs {
		_ = unix.IoctlSetTermios(t.stream, setTermios, &t.attrs)
	}
	return true
}

// hasSiblings reports whether this process group has another process than this
// one, its ancestors, which wait for it, and its own helpers.
func hasSiblings() bool {
	table, err := proc.Table()
	if err != nil {
		return false
	}
	parents := map[int]int{}
	for _, entry := range table {
		parents[entry.PID] = entry.Parent
	}
	descends := func(pid, from int) bool {
		for range len(table) { // numbers that were reused could make a loop
			if pid == from {
				return true
			}
			above, is := parents[pid]
			if !is {
				return false
			}
			pid = above
		}
		return false
	}
	self := os.Getpid()
	return slices.ContainsFunc(table, func(e proc.Entry) bool {
		group, err := unix.Getpgid(e.PID)
		return err == nil && group == unix.Getpgrp() && !e.Dead && !descends(self, e.PID) && !descends(e.PID, self)
	})
}
