package harness

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// State is the directory where the world's sidecars keep what belongs to their
// sessions.
func (w *World) State() string {
	return filepath.Join(w.Home, ".local", "state", "sandbox-sidecar", "run")
}

// Cgroups lists the cgroup directories that a sidecar of the world has made,
// wherever its cgroup is: its own first, then one for each session. Directories
// that an earlier process with the same id has left do not count.
func (w *World) Cgroups(t testing.TB, sidecar int) []string {
	t.Helper()
	var dirs []string
	pattern := fmt.Sprintf("sandbox-sidecar-%d-*", sidecar)
	for _, mount := range cgroupMounts(t) {
		_ = filepath.WalkDir(mount, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil // a directory that was removed meanwhile, or that only hides other users' cgroups
			}
			for up := path; entry.IsDir() && len(up) > 1; up = filepath.Dir(up) {
				match, _ := filepath.Match(pattern, filepath.Base(up))
				if info, err := os.Stat(up); match && err == nil && info.ModTime().After(w.born) {
					dirs = append(dirs, path)
					break
				}
			}
			return nil
		})
	}
	return dirs
}

// NoTrace waits until the world's last sidecar, which has ended, has left
// nothing: no state, no process, no cgroup.
func NoTrace(t testing.TB, w *World, sidecar int) {
	t.Helper()
	MustEnd(t, "the sidecar has ended", func() bool { return !Alive(sidecar) })
	var left []os.DirEntry
	empty := func() bool {
		var err error
		left, err = os.ReadDir(w.State())
		return err == nil && len(left) == 0
	}
	if !Within(empty) {
		Breach(t, "a survivor: the state directory holds %v", left)
		t.FailNow()
	}
	MustEnd(t, "the watchdog has ended", func() bool { return len(Watchdogs(w)) == 0 })
	MustEnd(t, "the cgroups are gone", func() bool { return len(w.Cgroups(t, sidecar)) == 0 })
}

// Watchdogs lists the watchdogs of the world's sidecars.
func Watchdogs(w *World) []int { return Find(w.State()) }

// Subreapers lists the subreapers of a sidecar. It has some if it can make no
// cgroups.
func Subreapers(sidecar int) []int { return inRole("subreaper", sidecar) }

// DomainKillers finds the domain killers beside the session of a subreaper.
func DomainKillers(subreaper int) []int { return inRole("domain-killer", subreaper) }

// CacheHolders lists the holders of caches' overlays that a sidecar has started.
func CacheHolders(sidecar int) []int { return inRole("cache-holder", sidecar) }

// holdsCaches reports whether a holder of caches' overlays has something in the
// world's home open.
func (w *World) holdsCaches() bool {
	for _, pid := range find(func(line string) bool { return strings.HasSuffix(line, "\x00cache-holder\x00") }) {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if slices.ContainsFunc(links, func(link string) bool {
			to, err := os.Readlink(link)
			return err == nil && strings.HasPrefix(to, w.Home+"/") && strings.Contains(to, "/sandbox-sidecar/overlays")
		}) {
			return true
		}
	}
	return false
}

// inRole finds the children of a process that are the sidecar's binary in a
// role.
func inRole(role string, parent int) []int {
	var found []int
	for _, pid := range find(func(line string) bool { return strings.HasSuffix(line, "\x00"+role+"\x00") }) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", parent)) {
			found = append(found, pid)
		}
	}
	return found
}
