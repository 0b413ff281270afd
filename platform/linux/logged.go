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

// loggedDenial is what a logged refusal is to be told as; false where it is
// not, or somebody else tells it.
func loggedDenial(refusal audit.Denial, readings bool) (platform.Denial, bool) {
	denial := platform.Denial{PID: refusal.PID, Process: refusal.Process, Count: 1}
	only := func(rights ...string) bool {
		return !slices.ContainsFunc(refusal.Blockers, func(blocker string) bool { return !slices.Contains(rights, blocker) })
	}
	switch {
	case only("fs.read_file", "fs.read_dir"):
		denial.Access, denial.Target = platform.RefusedRead, ownProc(refusal)
		return denial, readings && strings.HasPrefix(refusal.Path, "/") && !denials.ReadByRuntime(refusal.Path)
	case only("fs.resolve_unix"):
		denial.Access, denial.Target = platform.RefusedConnectUnix, refusal.Path
		return denial, strings.HasPrefix(refusal.Path, "/")
	case only("scope.abstract_unix_socket"):
		name, abstract := strings.CutPrefix(refusal.Path, "\x00")
		denial.Access, denial.Target = platform.RefusedConnectUnix, "abstract:"+name
		return denial, abstract
	case only("scope.signal"):
		denial.Access, denial.Target = platform.RefusedSignal, strconv.Itoa(refusal.Peer)
		return denial, refusal.Peer > 0 && attempted(refusal.Call)
	}
	return denial, false
}

// ownProc names files of who was refused as every process names its own.
func ownProc(refusal audit.Denial) string {
	own := fmt.Sprintf("/proc/%d", refusal.PID)
	if rest, is := strings.CutPrefix(refusal.Path, own); is && (rest == "" || rest[0] == '/') {
		return "/proc/self" + rest
	}
	return refusal.Path
}

// attempted reports whether a call was to signal just that process, as far as
// the call is known. Signal 0 is a question, and a signal to a group, or to
// everybody, is only refused where it reaches nobody.
func attempted(call audit.Call) bool {
	number := seccomp.Number{Arch: call.Arch, Nr: call.Number}
	switch {
	case seccomp.IsCall("kill", number):
		return int32(call.Args[0]) > 0 && int32(call.Args[1]) != 0
	case seccomp.IsCall("pidfd_send_signal", number):
		return int32(call.Args[1]) != 0
	}
	return true
}
