package linux

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/denials"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Every call that a filter sends to be looked at has somebody who answers it: a call without handler fails with ENOSYS.
func TestObservation_EveryObservedCallHasAHandler(t *testing.T) {
	t.Parallel()
	for _, filtering := range []Filtering{
		{Observed: ObservedChanges}, {Observed: ObservedSome}, {Observed: ObservedAll, Isolated: true}, {Observed: ObservedSome, Offline: true},
	} {
		handlers := map[string]notify.Handler{}
		look(denials.New(denials.Options{Policy: &policy.Policy{}, Report: func(platform.Denial) {}}), filtering, handlers)
		asked := map[string]bool{}
		for _, rule := range rulesFor(filtering) {
			if rule.do == actionNotify {
				asked[rule.call] = true
				if _, is := handlers[rule.call]; !is {
					t.Errorf("%+v: nobody answers %s", filtering, rule.call)
				}
			}
		}
		for call := range handlers {
			if !asked[call] {
				t.Errorf("%+v: nobody asks about %s", filtering, call)
			}
		}
	}
}
