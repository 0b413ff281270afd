package linux

import (
	"os"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/tripwire"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

var alarmKinds = map[tripwire.Kind]platform.AlarmKind{
	tripwire.Created: platform.AlarmCreated, tripwire.Replaced: platform.AlarmReplaced,
	tripwire.Written: platform.AlarmWritten, tripwire.Refused: platform.AlarmRefused,
}

// watchProtected returns the Watch of a confinement for a policy's protected
// paths. If they are mounted, it still has to watch names that do not exist, and
// paths that a program outside replaces: the kernel removes a mount if its path
// is removed or renamed over from outside. If calls are observed, the observer
// reports what git is refused.
func watchProtected(p *policy.Policy, mounted, observed bool) func(platform.Watch) (platform.Watcher, error) {
	var paths, patterns []string
	for _, protected := range p.Protected {
		if protected.Busy && protected.Decides && !mounted {
			continue
		}
		if protected.Pattern {
			patterns = append(patterns, protected.Path)
			continue
		}
		paths = append(paths, protected.Path)
	}
	return func(w platform.Watch) (platform.Watcher, error) {
		return tripwire.New(tripwire.Options{
			Paths: paths, Patterns: patterns, Match: policy.MatchName, Mounted: mounted, Refusals: mounted && !observed,
			Report: func(kind tripwire.Kind, path string) {
				w.Raise(platform.Alarm{Kind: alarmKinds[kind], Path: path})
			},
			Refs: w.Refs, Touched: w.Touched,
		})
	}
}

// DetachWatches returns the file through which tripwires learn of changes, for a
// caller that closes it where nobody waits; nil if there is none. No session may
// run any more. To close it takes the kernel some 15 ms.
func DetachWatches() *os.File { return tripwire.Detach() }
