package systemd

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// newCgroup makes a cgroup for a login below the one that the tests run in. No
// other process is in it.
func newCgroup(t *testing.T) string {
	t.Helper()
	base := ownCgroup(t)
	dir, err := os.MkdirTemp(base, "login-")
	if err != nil {
		harness.Skip(t, "systemd", err.Error())
	}
	return dir
}

// ownCgroup is the directory of this process's cgroup v2. It must be visible
// from the root of the hierarchy.
func ownCgroup(t *testing.T) string {
	t.Helper()
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		harness.Skip(t, "systemd", err.Error())
	}
	path := ""
	for line := range strings.Lines(string(self)) {
		if after, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path = after
		}
	}
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if path != "" && len(fields) > 5 && fields[3] == "/" && strings.Contains(lines.Text(), " - cgroup2 ") {
			dir := filepath.Join(fields[4], path)
			if unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil {
				return dir
			}
		}
	}
	harness.Skip(t, "systemd", "no cgroup v2 that can be written")
	return ""
}

// removeCgroup kills what is left in a cgroup and below, one by one, and
// removes it. It does not use cgroup.kill: on many kernels no process can start
// any more below a cgroup that was once killed that way.
func removeCgroup(t *testing.T, root string) {
	t.Helper()
	harness.Eventually(t, "the login's cgroups are gone", func() bool {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil // a directory that vanishes meanwhile
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			procs, _ := os.ReadFile(filepath.Join(dirs[i], "cgroup.procs"))
			for _, field := range strings.Fields(string(procs)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			}
			_ = unix.Rmdir(dirs[i])
		}
		_, err := os.Stat(root)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// cgroupOf is a process's cgroup v2, as this process sees it.
func cgroupOf(t *testing.T, pid int) string {
	t.Helper()
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path
		}
	}
	t.Fatalf("process %d is in no cgroup v2:\n%s", pid, table)
	return ""
}

// traces lists what the sidecar with this process id has below the login's
// cgroup: its scope, and the cgroups in it.
func (l *login) traces(pid int) []string {
	var found []string
	_ = filepath.WalkDir(l.cgroup, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), fmt.Sprintf("sandbox-sidecar-%d-", pid)) {
			found = append(found, path)
		}
		return nil // a directory that vanishes meanwhile
	})
	return found
}
