package linux

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/denials"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// listenerAvailable says why nobody can be asked about a session's calls here, in words a user can act on, or nil.
var listenerAvailable = sync.OnceValue(func() error {
	err := tryListener(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) {
		return errors.New("the kernel is older than 5.19, so that signals would repeat calls that were carried out")
	}
	return err
})

// observationAvailable says why calls cannot be looked into here before they are answered, in words a user can act on, or nil.
var observationAvailable = sync.OnceValue(func() error {
	if err := listenerAvailable(); err != nil {
		return err
	}
	return notify.Reach()
})

// inEffect is the policy as it holds in a session: rules for what does not exist have none, and a protected path is only kept where
// something is mounted on it.
func inEffect(p *policy.Policy, r Ruleset) *policy.Policy {
	effective := *p
	effective.Rules, effective.Protected = nil, nil
	for _, rule := range p.Rules {
		if _, err := os.Lstat(rule.Path); err != nil {
			continue
		}
		if r.Own == nil {
			rule.Access &^= rule.Guarded
		}
		effective.Rules = append(effective.Rules, rule)
	}
	for _, protected := range p.Protected {
		if r.Own == nil {
			break
		}
		if fd, err := openPlain(protected.Path); err == nil {
			unix.Close(fd)
			effective.Protected = append(effective.Protected, protected)
		}
	}
	return &effective
}

// canarySignal is none; a kernel answers EINVAL.
const canarySignal = 0x7fffffff

// refusedCanary is what a supervisor answers to it.
const refusedCanary = unix.EBADMSG

// proveObserved makes sure that somebody looks at the calls of the calling thread.
func proveObserved() error {
	return notify.Expect("send a signal that is none, observed", unix.Kill(unix.Getpid(), canarySignal), refusedCanary)
}

// look lets an observer look at calls before they are answered by who decides about them.
func look(o *denials.Observer, filtering Filtering, handlers map[string]notify.Handler) {
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
		handlers[call] = notify.Handler{First: denials.First(o, call), Handle: denials.Answer(o, call)}
	}
	after("pidfd_send_signal", o.KillHandle, (*notify.Call).Continue)
	after("kill", o.Kill, func(c *notify.Call) {
		if int32(c.Args[1]) == canarySignal {
			c.Fail(refusedCanary)
			return
		}
		c.Continue()
	})
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
