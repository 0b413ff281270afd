package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// inherited are the fields of /proc/PID/status that a process hands down.
var inherited = []string{
	"Umask:", "Uid:", "Gid:", "Groups:", "NoNewPrivs:", "CapInh:", "CapPrm:", "CapBnd:", "CapAmb:", "Seccomp:",
	"Seccomp_filters:", "SigBlk:", "SigIgn:", "Cpus_allowed:", "Mems_allowed:",
}

// circumstances are what a process hands down to those that it starts, as a text
// that is equal if they are: limits, groups, mask of new files, niceness,
// processors, control groups, namespaces, ignored signals, security labels. Of open
// files it is the hard limit, as Go's runtime has raised the other.
func circumstances() string {
	var text strings.Builder
	// The mask of the main thread is another one while that starts a thread.
	status, _ := os.ReadFile("/proc/thread-self/status") // without it, other fields differ
	for line := range strings.Lines(string(status)) {
		for _, key := range inherited {
			if strings.HasPrefix(line, key) {
				text.WriteString(line)
			}
		}
	}
	const limits = 16 // RLIM_NLIMITS
	for resource := range limits {
		var limit unix.Rlimit
		err := unix.Getrlimit(resource, &limit)
		fmt.Fprintln(&text, resource, limit, err)
	}
	nice, _ := unix.Getpriority(unix.PRIO_PROCESS, 0)
	fmt.Fprintln(&text, nice)
	for _, file := range []string{"oom_score_adj", "cgroup", "attr/current", "personality"} {
		content, _ := os.ReadFile("/proc/self/" + file)
		fmt.Fprintf(&text, "%s\n", content)
	}
	for _, namespace := range []string{"user", "mnt", "net", "ipc", "uts", "pid", "cgroup", "time"} {
		name, _ := os.Readlink("/proc/self/ns/" + namespace)
		fmt.Fprintln(&text, name)
	}
	return text.String()
}
