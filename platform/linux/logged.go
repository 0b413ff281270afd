package linux

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/denials"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
)

// loggedDenial returns the denial to report for one in the audit log, or false
// if there is none or the observer reports it. reads is true if denied reads are
// reported from the log.
func loggedDenial(logged audit.Denial, reads bool) (platform.Denial, bool) {
	denial := platform.Denial{PID: logged.PID, Process: logged.Process, Count: 1}
	only := func(rights ...string) bool {
		return !slices.ContainsFunc(logged.Blockers, func(blocker string) bool {
			return !slices.Contains(rights, blocker)
		})
	}
	switch {
	case only("fs.read_file", "fs.read_dir"):
		denial.Access, denial.Target = platform.RefusedRead, asProcSelf(logged)
		return denial, reads && strings.HasPrefix(logged.Path, "/") && !denials.ReadByRuntime(logged.Path)
	case only("fs.resolve_unix"):
		denial.Access, denial.Target = platform.RefusedConnectUnix, logged.Path
		return denial, strings.HasPrefix(logged.Path, "/")
	case only("scope.abstract_unix_socket"):
		name, abstract := strings.CutPrefix(logged.Path, "\x00")
		denial.Access, denial.Target = platform.RefusedConnectUnix, "abstract:"+name
		return denial, abstract
	case only("scope.signal"):
		denial.Access, denial.Target = platform.RefusedSignal, strconv.Itoa(logged.Peer)
		return denial, logged.Peer > 0 && sendsSignal(logged.Call)
	}
	return denial, false
}

// asProcSelf returns the refused path, with /proc/self for the refused process's
// own directory in /proc.
func asProcSelf(logged audit.Denial) string {
	own := fmt.Sprintf("/proc/%d", logged.PID)
	if rest, is := strings.CutPrefix(logged.Path, own); is && (rest == "" || rest[0] == '/') {
		return "/proc/self" + rest
	}
	return logged.Path
}

// sendsSignal reports whether a call, as far as it is known, was meant to signal
// one process. Signal 0 only tests whether a process exists. A signal to a group
// or to all processes also reaches processes that it may signal.
func sendsSignal(call audit.Call) bool {
	number := seccomp.Number{Arch: call.Arch, Nr: call.Number}
	switch {
	case seccomp.IsCall("kill", number):
		return int32(call.Args[0]) > 0 && int32(call.Args[1]) != 0
	case seccomp.IsCall("pidfd_send_signal", number):
		return int32(call.Args[1]) != 0
	}
	return true
}
