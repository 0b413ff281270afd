package linux

import (
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/denials"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// seesChanges reports whether the supervisor of a session is asked about every
// call that may change a file, or that may have a process outside change one. A
// process outside can also send a descriptor that is open for writing.
func (r ruleset) seesChanges(p *policy.Policy) bool {
	switch {
	case !r.Filtering.Observed.SeesChanges(), r.Filtering.Shared, dumpsAnyName():
		return false
	case r.Filtering.Sockets: // connect is asked about, and there are no datagrams
		return true
	}
	return r.FS&stage.FSConnect != 0 && len(p.UnixSockets) == 0
}

// noteChanges has every call noted that may change a file, beside those that the
// observer itself handles.
func noteChanges(o *denials.Observer, filtering seccomp.Filtering, handlers map[string]notify.Handler) {
	calls := append(slices.Clone(seccomp.AttributeCalls()), "bind", "connect", "ioctl", "sendto")
	if !filtering.Offline && !filtering.Isolated {
		calls = append(calls, "socket")
	}
	asked := filtering.SupervisedCalls()
	for _, call := range calls {
		if !slices.Contains(asked, call) {
			continue
		}
		handler, is := handlers[call]
		if !is {
			handler.Handle, handler.FastPath = (*notify.Call).Continue, continueNow
		}
		handler.FastPath = denials.Noting(o, handler.FastPath)
		handlers[call] = handler
	}
}

func continueNow(call *notify.Call) bool {
	call.Continue()
	return true
}

// ChangedNothing implements platform.ChangeWitness.
func (s *supervision) ChangedNothing() bool {
	return s.seesChanges && s.observer.Noticed() && !s.observer.MayHaveChanged()
}

// dumpsAnyName reports whether a process that crashes may choose the name of a
// new file in its working directory (core(5)): nobody is asked about that.
var dumpsAnyName = sync.OnceValue(func() bool {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	return err != nil || namesAny(strings.TrimSpace(string(pattern)))
})

// namesAny reports whether a session can choose the names of what a pattern of
// core(5) makes: by a program's name, path or user.
func namesAny(pattern string) bool {
	if pattern == "" || pattern[0] == '|' {
		return false
	}
	return strings.ContainsAny(strings.ReplaceAll(pattern, "%p", ""), "%/")
}
