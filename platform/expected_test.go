package platform

import "testing"

func TestExpected_IsOnlyWhatProgramsTryByThemselves(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		access Refused
		target string
		want   bool
	}{
		{RefusedWrite, "/proc/self/oom_score_adj", true},
		{RefusedWrite, "/proc/123/coredump_filter", true},
		{RefusedWrite, "/proc/self/task/12/comm", true},
		{RefusedWrite, "/proc/self/mem", false},
		{RefusedWrite, "/proc/sys/kernel/core_pattern", false},
		{RefusedWrite, "/home/u/proc/1/oom_score_adj", false},
		{RefusedRead, "/proc/self/oom_score_adj", false}, // it may be read
		{RefusedRead, "/sys/fs/cgroup/user.slice/memory.max", true},
		{RefusedRead, "/sys/fs/cgroup", true},
		{RefusedRead, "/sys/fs/cgroups", false},
		{RefusedWrite, "/sys/fs/cgroup/user.slice/memory.max", false},
		{RefusedCreate, "/home/u/.config/go/telemetry", true},
		{RefusedCreate, "/home/u/.config/configstore/update-notifier-npm.json", true},
		{RefusedCreate, "/home/u/.config/go/env", false},
		{RefusedRead, "/home/u/.config/go/telemetry/mode", false},
		{RefusedExecute, "/home/u/.config/go/telemetry/x", false},
		{RefusedConnect, "127.0.0.1:80", false},
	} {
		if got := Expected(Denial{Access: test.access, Target: test.target}); got != test.want {
			t.Errorf("%s %s: %t", test.access, test.target, got)
		}
	}
}
