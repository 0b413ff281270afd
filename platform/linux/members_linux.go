package linux

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
)

// members tells the processes of one session from all others. The kernel tells
// nobody who is in a Landlock domain. What a session cannot leave says it
// instead: its mount namespace, its cgroup, and, where it has neither, the
// process above it that adopts its orphans.
type members struct {
	leader int
	// root is the subreaper of this session alone, or the leader.
	root int
	// filters is how many filters of system calls this process has. Those of
	// the session have more, and their domain killer has not.
	filters int
	// mounts and cgroup are the leader's; empty where they are not the
	// session's own.
	mounts, cgroup string
}

// membersOf describes the session of a leader that has executed nothing yet.
func membersOf(leader int, ownMounts bool) members {
	m := members{leader: leader, root: leader}
	own, err := readStatus(os.Getpid())
	if err != nil {
		own.filters = int(^uint(0) >> 1) // nobody has more
	}
	m.filters = own.filters
	if ownMounts {
		m.mounts, _ = os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", leader))
	}
	if theirs, err := readText(leader, "cgroup"); err == nil {
		if ours, err := readText(os.Getpid(), "cgroup"); err == nil && ours != theirs {
			m.cgroup = theirs
		}
	}
	if first, err := readStatus(leader); err == nil && first.parent != os.Getpid() {
		if above, err := readStatus(first.parent); err == nil && above.parent == os.Getpid() {
			m.root = first.parent
		}
	}
	return m
}

// errOutside means that a process is not the session's, or that nobody can
// tell.
var errOutside = errors.New("the process is not the session's")

// find returns nil for a thread of the session, errOutside for any other, and
// fs.ErrNotExist where there is none. It is an answer for the moment: by the
// time that the kernel looks the number up, it may be another's.
func (m members) find(thread int) error {
	status, err := readStatus(thread)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return fs.ErrNotExist
	case err != nil || status.filters <= m.filters:
		return errOutside
	case m.mounts != "":
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", thread))
		return insideIf(err == nil && theirs == m.mounts)
	case m.cgroup != "":
		theirs, err := readText(thread, "cgroup")
		return insideIf(err == nil && theirs == m.cgroup)
	}
	// Twice, because the number of one that ends meanwhile may become
	// another's.
	above := m.ancestors(status.process)
	return insideIf(slices.Contains(above, m.root) && slices.Equal(above, m.ancestors(status.process)))
}

func insideIf(is bool) error {
	if is {
		return nil
	}
	return errOutside
}

// mostAncestors bounds the way up.
const mostAncestors = 4096

// ancestors are a process and those above it, up to the session's root.
func (m members) ancestors(pid int) (list []int) {
	for len(list) < mostAncestors && pid > 0 {
		list = append(list, pid)
		if pid == m.root {
			break
		}
		status, err := readStatus(pid)
		if err != nil {
			return nil
		}
		pid = status.parent
	}
	return list
}

// threadStatus is what /proc/TID/status says; see proc_pid_status(5).
type threadStatus struct{ process, parent, filters int }

func readStatus(thread int) (threadStatus, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return threadStatus{}, err
	}
	var status threadStatus
	fields := map[string]*int{"Tgid": &status.process, "PPid": &status.parent, "Seccomp_filters": &status.filters}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		into := fields[string(name)]
		if into == nil {
			continue
		}
		if *into, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
			return threadStatus{}, fmt.Errorf("read status of thread %d: %w", thread, err)
		}
		delete(fields, string(name))
	}
	if len(fields) > 0 {
		return threadStatus{}, fmt.Errorf("read status of thread %d: a field is missing", thread)
	}
	return status, nil
}

func readText(pid int, name string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return string(text), err
}

// prioritise answers the calls of priorityRules. What they name is in
// registers, which nobody can change while the call waits.
func prioritise(handlers map[string]notify.Handler, m members) {
	answer := func(arg int) notify.Handler {
		return notify.Handler{Handle: func(call *notify.Call) {
			switch err := m.find(int(int32(call.Args[arg]))); {
			case err == nil:
				call.Continue()
			case errors.Is(err, fs.ErrNotExist):
				call.Fail(unix.ESRCH)
			default:
				call.Fail(unix.EPERM)
			}
		}}
	}
	// A group is known by the process that has founded it: nobody joins a group
	// of another session id, and the stage has begun a new one.
	for call, arg := range seccomp.PriorityCalls() {
		handlers[call] = answer(arg)
	}
}
