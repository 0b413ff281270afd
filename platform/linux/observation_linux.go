package linux

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/denials"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// listenerAvailable returns nil if a supervisor can decide about a session's
// calls on this machine. Otherwise the error says why not, in words that a user
// can act on.
var listenerAvailable = sync.OnceValue(func() error {
	err := tryListener(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) {
		return errors.New("the kernel is older than 5.19, so signals would repeat calls that were carried out")
	}
	return err
})

// observationAvailable returns nil if a supervisor can also read the arguments
// of calls in memory; see listenerAvailable.
var observationAvailable = sync.OnceValue(func() error {
	if err := listenerAvailable(); err != nil {
		return err
	}
	return notify.Reach()
})

// answeringAvailable returns nil if a supervisor can also use the descriptors of
// callers, as it must to connect their sockets; see listenerAvailable.
var answeringAvailable = sync.OnceValue(func() error {
	if err := observationAvailable(); err != nil {
		return err
	}
	return notify.ReachDescriptors()
})

// effectivePolicy returns the policy as it holds in a session. Rules for paths
// that do not exist have no effect, and a path is protected only if it is
// mounted on itself.
func effectivePolicy(p *policy.Policy, r ruleset) *policy.Policy {
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
	names := fsguard.NewNames()
	for _, protected := range p.Protected {
		if r.Namespaces == nil {
			break
		}
		if !names.Lacks(protected.Path) && fsguard.Plain(protected.Path) == nil {
			effective.Protected = append(effective.Protected, protected)
		}
	}
	return &effective
}

// unproven is the report on an observer that has not noticed its canary.
const unproven = "denials may not be reported: the sidecar did not notice a denial in a test"

// Proven implements platform.Proving.
func (s *supervision) Proven(e *platform.Enforcement) {
	if s.observer == nil || s.observer.Noticed() {
		return
	}
	e.Protections[platform.Denials] = platform.Protection{Status: platform.Absent, Detail: unproven, Fix: fixUnproven}
}

const fixUnproven = "check that /proc is mounted, and that no setting grants writing below it"

// observe puts an observer in front of the handlers: it inspects each call
// before the handler answers it. Calls without a handler continue.
func observe(o *denials.Observer, filtering seccomp.Filtering, handlers map[string]notify.Handler) {
	before := func(call string, inspect func(*notify.Call), answer func(*notify.Call)) {
		handlers[call] = notify.Handler{Handle: func(c *notify.Call) {
			inspect(c)
			answer(c)
		}}
	}
	answerOf := func(call string) func(*notify.Call) {
		if handler, is := handlers[call]; is {
			return handler.Handle
		}
		return (*notify.Call).Continue
	}
	for _, call := range denials.Calls() {
		handlers[call] = notify.Handler{FastPath: denials.FastPath(o, call), Handle: denials.SlowPath(o, call)}
	}
	if filtering.Observed == seccomp.ObservedAll {
		for _, call := range seccomp.ModeCalls() {
			handlers[call.Name] = notify.Handler{
				Handle: denials.ChangeMode(o, call.Name, call.Arg), FastPath: denials.Unmarked(call.Arg),
			}
		}
	}
	before("pidfd_send_signal", o.KillHandle, (*notify.Call).Continue)
	before("kill", o.Kill, (*notify.Call).Continue)
	if filtering.Isolated {
		if !filtering.Hosts { // otherwise package network reports
			before("connect", o.Connect, answerOf("connect"))
		}
		before("bind", o.Bind, answerOf("bind"))
		before("sendto", o.SendTo, (*notify.Call).Continue)
	}
	answer := answerOf("bind")
	handlers["bind"] = notify.Handler{Handle: func(c *notify.Call) {
		if !o.BindUnix(c) {
			answer(c)
		}
	}}
	if filtering.Offline {
		before("socket", o.Socket, func(c *notify.Call) { c.Fail(unix.EACCES) })
	}
	if filtering.Observed.SeesChanges() {
		noteChanges(o, filtering, handlers)
	}
}
