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

func TestExpected_ProgramsAndTheirHistories(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		access          Refused
		process, target string
		want            bool
	}{
		{RefusedWrite, "bash", "/home/u/.bash_history", true},
		{RefusedCreate, "bash", "/home/u/.bash_history-12345.tmp", true},
		{RefusedRead, "zsh", "/home/u/.zsh_history", true},
		{RefusedCreate, "zsh", "/home/u/.zsh_history.LOCK", true},
		{RefusedCreate, "vim.basic", "/home/u/.viminfo.tmp", true},
		{RefusedCreate, "python3.11", "/home/u/.python_history-1.tmp", true},
		{RefusedRead, "cat", "/home/u/.bash_history", false},
		{RefusedWrite, "bash", "/home/u/.bashrc", false},
		{RefusedWrite, "python3", "/home/u/.bash_history", false},
		{RefusedExecute, "bash", "/home/u/.bash_history", false},
		{RefusedWrite, "", "/home/u/.bash_history", false},
	} {
		if got := Expected(Denial{Access: test.access, Target: test.target, Process: test.process}); got != test.want {
			t.Errorf("%s %s by %s: %t", test.access, test.target, test.process, got)
		}
	}
}
