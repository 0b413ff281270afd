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

// members identifies the processes of one session by what they cannot leave; see
// docs/design/membership.md.
type members struct {
	leader int
	// root is the subreaper of this session alone, or the leader.
	root int
	// filters is the number of seccomp filters of this process. Processes of
	// the session have more, but their domain killer does not.
	filters int
	// mounts and cgroup identify the leader's; empty if they are not the
	// session's own.
	mounts, cgroup string
	// aloof: the leader is the init of a group, whose limits and priority no
	// command may change.
	aloof bool
}

// membersOf describes the session of a leader that has executed nothing yet. If
// it makes a mount namespace of its own, enterMounts must be called after that.
func membersOf(leader int) members {
	m := members{leader: leader, root: leader}
	own, err := readStatus(os.Getpid())
	if err != nil {
		own.filters = int(^uint(0) >> 1) // no process has more
	}
	m.filters = own.filters
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

// enterMounts makes the leader's mount namespace count, which is the session's
// own.
func (m *members) enterMounts() {
	m.mounts, _ = os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", m.leader))
}

// errOutside means that a process is not the session's, or may not be.
var errOutside = errors.New("the process is not the session's")

// find returns nil for a thread of the session, errOutside for another, and
// fs.ErrNotExist if there is none. The answer holds for a moment: the number can
// be another thread's when the kernel carries out the call.
func (m members) find(thread int) error {
	status, err := readStatus(thread)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return fs.ErrNotExist
	case err != nil || status.filters <= m.filters || m.aloof && status.process == m.leader:
		return errOutside
	case m.mounts != "":
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", thread))
		return insideIf(err == nil && theirs == m.mounts)
	case m.cgroup != "":
		theirs, err := readText(thread, "cgroup")
		return insideIf(err == nil && theirs == m.cgroup)
	}
	// Twice, because a process can end meanwhile and another can get its
	// number.
	above := m.ancestors(status.process)
	return insideIf(slices.ContainsFunc(above, m.tops) && slices.Equal(above, m.ancestors(status.process)))
}

func insideIf(is bool) error {
	if is {
		return nil
	}
	return errOutside
}

// maxAncestors bounds the search for the root, in processes.
const maxAncestors = 4096

// tops reports whether all descendants of a process are the session's. Those of a
// group's init are, which lives as long as the group, and which a /proc with hidepid
// may hide.
func (m members) tops(pid int) bool { return pid == m.root || m.aloof && pid == m.leader }

// ancestors returns a process and its ancestors, up to one that tops them.
func (m members) ancestors(pid int) (list []int) {
	for len(list) < maxAncestors && pid > 0 {
		list = append(list, pid)
		if m.tops(pid) {
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

// threadStatus is a part of /proc/TID/status; see proc_pid_status(5).
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

// handlePriorities adds handlers for seccomp.PriorityCalls. The processes that
// these calls name are in registers, which cannot change while the call waits.
func handlePriorities(handlers map[string]notify.Handler, m members) {
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
	// A group is checked by the process that created it: a process can only
	// join a group of its own session id, and the stage has created a new one.
	for call, arg := range seccomp.PriorityCalls() {
		handlers[call] = answer(arg)
	}
}
