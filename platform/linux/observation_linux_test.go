package linux

import (
	"maps"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/denials"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/sockets"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Every call that the filter sends to the supervisor has a handler: a call
// without one fails with ENOSYS.
func TestObservation_EveryObservedCallHasAHandler(t *testing.T) {
	t.Parallel()
	for _, filtering := range []seccomp.Filtering{
		{Observed: seccomp.ObservedCreations},
		{Observed: seccomp.ObservedNamed},
		{Observed: seccomp.ObservedAll, Isolated: true},
		{Observed: seccomp.ObservedNamed, Offline: true},
	} {
		handlers := map[string]notify.Handler{}
		observe(denials.New(denials.Options{Policy: &policy.Policy{}, Report: func(platform.Denial) {}}),
			filtering, handlers)
		asked := map[string]bool{}
		for _, call := range filtering.SupervisedCalls() {
			asked[call] = true
			if _, is := handlers[call]; !is {
				t.Errorf("%+v: no handler for %s", filtering, call)
			}
		}
		for call := range handlers {
			if !asked[call] && filtering.Observed != seccomp.ObservedCreations {
				t.Errorf("%+v: a handler for %s, which the filter does not send", filtering, call)
			}
		}
	}
}

// The report does not claim that denials are reported if the observer lets calls
// continue without inspecting them.
func TestObservation_IsClaimedOnlyIfItWasProved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		want  bool
		blind func(h platform.Handover) (platform.Supervision, error)
	}{
		"one that works": {want: true},
		"one that inspects nothing": {blind: func(h platform.Handover) (platform.Supervision, error) {
			return superviseBadly(h, &policy.Policy{}, func(string, *denials.Observer) notify.Handler {
				return notify.Handler{Handle: (*notify.Call).Continue}
			})
		}},
		"one that thinks everything is granted": {blind: func(h platform.Handover) (platform.Supervision, error) {
			all := &policy.Policy{Rules: []policy.Rule{{Path: "/", Access: policy.ReadWrite | policy.Execute}}}
			return superviseBadly(h, all, func(call string, o *denials.Observer) notify.Handler {
				return notify.Handler{FastPath: denials.FastPath(o, call), Handle: denials.SlowPath(o, call)}
			})
		}},
	} {
		d := converse(t, platform.Hooks{Denied: func(platform.Denial) {}}, func(c *platform.Confinement) {
			if test.blind != nil {
				c.Supervise = test.blind
			}
		})
		got := d.Enforcement.Protections[platform.Denials]
		if claimed := got.Status != platform.Absent; claimed != test.want || !claimed &&
			(got.Detail != unproven || got.Fix == "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// superviseBadly is Ruleset.supervise with another policy and other handlers for
// the observed calls.
func superviseBadly(
	h platform.Handover, p *policy.Policy, answer func(string, *denials.Observer) notify.Handler,
) (platform.Supervision, error) {
	mediator, err := sockets.New(sockets.Grants{}, h.Take(canary.PassedDiag))
	if err != nil {
		return nil, err
	}
	s := &supervision{mediator: mediator, observer: denials.New(denials.Options{
		Policy: p, Report: func(platform.Denial) {}, Canary: canary.ObservedFile(h.PID),
	})}
	handlers := map[string]notify.Handler{"connect": {Handle: mediator.Connect}, "bind": {Handle: mediator.Bind}}
	for _, call := range append(denials.Calls(), "kill", "pidfd_send_signal") {
		handlers[call] = notify.Handler{Handle: (*notify.Call).Continue}
	}
	for _, call := range denials.Calls() {
		handlers[call] = answer(call, s.observer)
	}
	handlePriorities(handlers, membersOf(h.PID))
	numbering, err := numberingOf(slices.Sorted(maps.Keys(handlers)))
	if err != nil {
		return nil, err
	}
	s.session, err = notify.SuperviseWith(h.Take(canary.PassedListener), numbering.table(handlers), nil)
	return s, err
}
