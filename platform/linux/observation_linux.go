package linux

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/denials"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// listenerAvailable says why nobody can be asked about a session's calls here,
// in words a user can act on, or nil.
var listenerAvailable = sync.OnceValue(func() error {
	err := tryListener(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) {
		return errors.New("the kernel is older than 5.19, so that signals would repeat calls that were carried out")
	}
	return err
})

// observationAvailable says why calls cannot be looked into here before they
// are answered, in words a user can act on, or nil.
var observationAvailable = sync.OnceValue(func() error {
	if err := listenerAvailable(); err != nil {
		return err
	}
	return notify.Reach()
})

// inEffect is the policy as it holds in a session: rules for what does not
// exist have none, and a protected path is only kept where something is mounted
// on it.
func inEffect(p *policy.Policy, r Ruleset) *policy.Policy {
	effective := *p
	effective.Rules, effective.Protected = nil, nil
	for _, rule := range p.Rules {
		if _, err := fsguard.Lstat(rule.Path); err != nil {
			continue
		}
		if r.Namespaces == nil {
			rule.Access &^= rule.Guarded
		}
		effective.Rules = append(effective.Rules, rule)
	}
	for _, protected := range p.Protected {
		if r.Namespaces == nil {
			break
		}
		if fsguard.Plain(protected.Path) == nil {
			effective.Protected = append(effective.Protected, protected)
		}
	}
	return &effective
}

// observedCanary is a file of a process's own that it may write, as its user,
// and that no policy grants: its name, as others see it.
func observedCanary(pid int) string { return fmt.Sprintf("/proc/%d/comm", pid) }

// proveObserved makes the calling process do what must be noticed, and makes
// sure that somebody answers. Whether it was noticed the sidecar knows; see
// supervision.Proven.
func proveObserved() error {
	fd, err := unix.Open(observedCanary(os.Getpid()), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		unix.Close(fd)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("open a file for writing, observed: no supervisor answers: %w", err)
	}
	return nil
}

// unproven is what is said of an observer that has not noticed its canary.
const unproven = "what is refused may only fail: the sidecar did not notice that the session was refused a file " +
	"for a test"

// Proven implements platform.Proving.
func (s *supervision) Proven(e *platform.Enforcement) {
	if s.observer == nil || s.observer.Noticed() {
		return
	}
	e.Protections[platform.Denials] = platform.Protection{Status: platform.Absent, Detail: unproven, Fix: fixUnproven}
}

const fixUnproven = "see that /proc is mounted, and that no setting grants writing below it"

// look lets an observer look at calls before they are answered by who decides
// about them.
func look(o *denials.Observer, filtering seccomp.Filtering, handlers map[string]notify.Handler) {
	after := func(call string, see func(*notify.Call), answer func(*notify.Call)) {
		handlers[call] = notify.Handler{Handle: func(c *notify.Call) {
			see(c)
			answer(c)
		}}
	}
	// What somebody else answers goes on being answered so.
	elsewhere := func(call string) func(*notify.Call) {
		if decided, is := handlers[call]; is {
			return decided.Handle
		}
		return (*notify.Call).Continue
	}
	for _, call := range denials.Calls() {
		handlers[call] = notify.Handler{FastPath: denials.FastPath(o, call), Handle: denials.SlowPath(o, call)}
	}
	after("pidfd_send_signal", o.KillHandle, (*notify.Call).Continue)
	after("kill", o.Kill, (*notify.Call).Continue)
	if filtering.Isolated {
		after("connect", o.Connect, elsewhere("connect"))
		after("bind", o.Bind, elsewhere("bind"))
		after("sendto", o.SendTo, (*notify.Call).Continue)
	}
	after("bind", o.BindUnix, elsewhere("bind"))
	if filtering.Offline {
		after("socket", o.Socket, func(c *notify.Call) { c.Fail(unix.EACCES) })
	}
}
