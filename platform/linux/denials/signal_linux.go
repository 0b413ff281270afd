package denials

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// Kill checks kill(2) of one process. A signal to a group, or to all processes,
// is denied only if it reaches none.
func (o *Observer) Kill(call *notify.Call) {
	o.signal(call, int(int32(call.Args[0])), int(int32(call.Args[1])))
}

// KillHandle checks pidfd_send_signal(2).
func (o *Observer) KillHandle(call *notify.Call) {
	o.signal(call, Target(call), int(int32(call.Args[1])))
}

// Target is the process that a call of pidfd_send_signal(2) names; -1 if there
// is none, or it has ended.
func Target(call *notify.Call) int {
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", call.TID, int32(call.Args[0])))
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(info)) {
		if text, ok := strings.CutPrefix(line, "Pid:"); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
				return pid
			}
		}
	}
	return -1
}

// signal reports a signal to a process that is certainly outside the session.
// The kernel does not expose Landlock domains. But a session cannot leave its
// mount namespace or its cgroup, so a process with another one is outside.
// Signal 0 only asks whether the process exists, and a dead process, which has
// left both, gets none.
func (o *Observer) signal(call *notify.Call, pid, signal int) {
	if !o.options.Signals || pid <= 0 || signal == 0 || !o.outside(call.TID, pid) ||
		dead(pid) || !mayKill(call, pid) {
		return
	}
	o.report(call, refusal{access: platform.RefusedSignal, target: strconv.Itoa(pid)})
}

func (o *Observer) outside(caller, target int) bool {
	for _, what := range []struct {
		name string
		read func(string) (string, error)
	}{{"ns/mnt", os.Readlink}, {"cgroup", readText}} {
		ours, err := what.read(fmt.Sprintf("/proc/%d/%s", caller, what.name))
		if err != nil {
			continue
		}
		theirs, err := what.read(fmt.Sprintf("/proc/%d/%s", target, what.name))
		if err == nil && ours != theirs {
			return true
		}
	}
	return false
}

// dead reports whether a process has ended. It may still wait for its parent.
func dead(pid int) bool {
	entry, err := proc.Find(pid)
	return errors.Is(err, unix.ESRCH) || err == nil && entry.Dead
}

func readText(name string) (string, error) {
	data, err := os.ReadFile(name)
	return string(data), err
}

// mayKill reports whether the kernel would allow the signal without a sandbox:
// as root, or as the target's user.
func mayKill(call *notify.Call, pid int) bool {
	caller, err := call.Identity()
	if err != nil {
		return false
	}
	var answer error
	err = caller.As(func() { answer = unix.Kill(pid, 0) })
	return err == nil && answer == nil
}
