//go:build linux

package lifetime

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// stat returns the fields of /proc/PID/stat from the third on, which follows
// the command name; nil if there is no such process.
func stat(pid int) []string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// children lists a process's children by their state: "Z" is a zombie.
func children(parent int) map[int]string {
	entries, _ := os.ReadDir("/proc")
	found := map[int]string{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if fields := stat(pid); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			found[pid] = fields[0]
		}
	}
	return found
}

func isSubreaper(pid int) bool {
	cmdline, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	args := splitArgs(cmdline)
	return len(args) > 1 && args[1] == "subreaper"
}

// groupOf is the process that a thread belongs to.
func groupOf(tid int) int {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(tid), "status"))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Tgid:"); ok {
			pid, _ := strconv.Atoi(strings.TrimSpace(value))
			return pid
		}
	}
	return 0
}

// splitArgs splits the content of /proc/PID/cmdline.
func splitArgs(cmdline []byte) []string { return strings.Split(string(cmdline), "\x00") }

// kill sends a signal that must arrive.
func kill(t testing.TB, pid int, signal unix.Signal) {
	t.Helper()
	if err := unix.Kill(pid, signal); err != nil {
		t.Fatalf("send %s to process %d: %v", unix.SignalName(signal), pid, err)
	}
}

// watchdogOf is the watchdog of one sidecar of a world that may have several.
func watchdogOf(t testing.TB, w *harness.World, sidecar int) int {
	t.Helper()
	for _, pid := range harness.Watchdogs(w) {
		if fields := stat(pid); len(fields) > 1 && fields[1] == strconv.Itoa(sidecar) {
			return pid
		}
	}
	t.Fatalf("sidecar %d has no watchdog", sidecar)
	return 0
}

// comm is the name of the program that a process runs.
func comm(pid int) string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	return strings.TrimSpace(string(text))
}
