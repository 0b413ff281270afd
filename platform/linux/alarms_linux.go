package linux

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/tripwire"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

var alarmKinds = map[tripwire.Kind]platform.AlarmKind{
	tripwire.Created: platform.AlarmCreated, tripwire.Replaced: platform.AlarmReplaced,
	tripwire.Written: platform.AlarmWritten, tripwire.Refused: platform.AlarmRefused,
}

// watchProtected watches a policy's protected paths for what the mounts of a
// session, where it has any, do not keep: names that do not exist, and whatever
// a program outside replaces, because the kernel takes a mount off what is
// renamed over or removed.
func watchProtected(p *policy.Policy, mounted bool) func(func(platform.Alarm)) (platform.Watcher, error) {
	var paths []string
	for _, protected := range p.Protected {
		paths = append(paths, protected.Path)
	}
	return func(raise func(platform.Alarm)) (platform.Watcher, error) {
		return tripwire.New(tripwire.Options{Paths: paths, Mounted: mounted, Report: func(kind tripwire.Kind, path string) {
			raise(platform.Alarm{Kind: alarmKinds[kind], Path: path})
		}})
	}
}
