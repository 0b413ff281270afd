package platform

import (
	"path"
	"strings"
)

// expected are accesses that programs try by themselves, mostly when they
// start, and run as well without. A path that ends in "/" stands for everything
// below, too. "~/" is any home directory, as the sandbox may have another one.
var expected = []struct {
	who    string
	change bool // else reading
	paths  []string
}{
	{"Chromium, sshd and service managers, about themselves", true, []string{
		"/proc/*/oom_score_adj", "/proc/*/oom_adj",
	}},
	{"the JVM", true, []string{"/proc/*/coredump_filter"}},
	{"the C library, to name a thread", true, []string{"/proc/*/task/*/comm", "/proc/*/comm"}},
	{"browsers, about their timers", true, []string{"/proc/*/timerslack_ns"}},
	{"the runtimes of Go, Node, Java and .NET, about memory and processors", false, []string{
		"/sys/kernel/mm/transparent_hugepage/", "/sys/fs/cgroup/", "/sys/devices/system/cpu/",
		"/sys/devices/system/node/",
	}},
	{"programs that count their use", true, []string{
		"~/.config/go/telemetry/", "~/.config/configstore/", "~/.config/nextjs-nodejs/",
		"~/.dotnet/TelemetryStorageService/",
	}},
}

// Expected reports whether a denial is of what programs try by themselves and
// do not need. It is only logged.
func Expected(d Denial) bool {
	change := false
	switch d.Access {
	case RefusedRead:
	case RefusedWrite, RefusedCreate, RefusedRemove:
		change = true
	default:
		return false
	}
	for _, row := range expected {
		if row.change != change {
			continue
		}
		for _, pattern := range row.paths {
			if matches(pattern, d.Target) {
				return true
			}
		}
	}
	return false
}

// matches compares a path with one of a row.
func matches(pattern, target string) bool {
	inHome, home := strings.CutPrefix(pattern, "~")
	if !home {
		if dir, below := strings.CutSuffix(pattern, "/"); below {
			return target == dir || strings.HasPrefix(target, pattern)
		}
		is, err := path.Match(pattern, target)
		return is && err == nil
	}
	return strings.Contains(target+"/", inHome)
}
