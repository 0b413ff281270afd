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
	return isTried(d, change) || ofHistory(d)
}

// ExpectedByName reports whether a denial is expected for nothing but the name of
// the process, which that can choose. An audit trail must have it.
func ExpectedByName(d Denial) bool {
	return Expected(d) && !isTried(d, d.Access != RefusedRead)
}

// isTried reports whether a denial is in a row of expected.
func isTried(d Denial, change bool) bool {
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

// histories are programs with their own files of history in a home directory.
// Sessions have their project's instead, as far as a program can be told. A file
// that a program writes first and renames, or locks, begins with the same name.
var histories = []struct{ program, file string }{
	{"bash", "/.bash_history"},
	{"zsh", "/.zsh_history"},
	{"zsh", "/.zhistory"},
	{"zsh", "/.zsh_sessions"},
	{"zsh", "/.histfile"},
	{"fish", "/.local/share/fish"},
	{"python", "/.python_history"},
	{"node", "/.node_repl_history"},
	{"MainThread", "/.node_repl_history"}, // node
	{"psql", "/.psql_history"},
	{"sqlite", "/.sqlite_history"},
	{"less", "/.lessh"},
	{"less", "/.local/state/lessh"},
	{"vi", "/.vimin"},
	{"vim", "/.vimin"},
}

// ofHistory reports whether a program was refused its own history.
func ofHistory(d Denial) bool {
	program, _, _ := strings.Cut(d.Process, ".") // vim.basic
	program = strings.TrimRight(program, "0123456789")
	for _, row := range histories {
		if row.program == program && strings.Contains(d.Target, row.file) {
			return true
		}
	}
	return false
}
