package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// errNoCgroup means that no mounted cgroup v2 hierarchy shows this process's
// own cgroup.
var errNoCgroup = errors.New("no usable cgroup v2 mount")

// ownCgroup returns the directory of the cgroup v2 that this process is in. It
// searches the mounts: on hybrid systems cgroup v2 is mounted beside v1, at
// /sys/fs/cgroup/unified or elsewhere.
func ownCgroup() (string, error) {
	self, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return "", fmt.Errorf("find own cgroup: %w", err)
	}
	defer self.Close()
	path, err := parseOwnCgroup(self)
	if err != nil {
		return "", err
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find cgroup mount: %w", err)
	}
	defer mounts.Close()
	candidates, err := parseCgroupMounts(mounts)
	if err != nil {
		return "", err
	}
	for _, mount := range candidates {
		dir, shown := mount.find(path)
		if !shown {
			continue // the mount shows another part of the hierarchy
		}
		// The table may list a mount that another one, such as a tmpfs, hides.
		// Only the magic number tells.
		var fs unix.Statfs_t
		if unix.Statfs(dir, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
			return dir, nil
		}
	}
	return "", errNoCgroup
}

// parseOwnCgroup finds the v2 entry ("0::/path", cgroups(7)) in
// /proc/self/cgroup.
func parseOwnCgroup(r io.Reader) (string, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if path, ok := strings.CutPrefix(lines.Text(), "0::"); ok {
			return path, nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("read own cgroup: %w", err)
	}
	return "", errNoCgroup
}

// cgroupMount is one cgroup2 mount: which part of the hierarchy it shows, and
// where.
type cgroupMount struct{ root, point string }

// find returns where the mount shows a cgroup, and whether it does. In a cgroup
// namespace, the names of cgroups outside begin with "/..". Such a name must
// not be cleaned: it would become the namespace's root.
func (m cgroupMount) find(path string) (dir string, shown bool) {
	rel, shown := strings.CutPrefix(path, strings.TrimSuffix(m.root, "/"))
	if !shown || rel != "" && rel[0] != '/' || slices.Contains(strings.Split(rel, "/"), "..") {
		return "", false
	}
	return filepath.Join(m.point, rel), true
}

// parseCgroupMounts lists the cgroup2 mounts of a mountinfo table, see
// proc_pid_mountinfo(5).
func parseCgroupMounts(r io.Reader) ([]cgroupMount, error) {
	var mounts []cgroupMount
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // overlay mounts have lines of many kilobytes
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		mounts = append(mounts, cgroupMount{root: unescapeMount(fields[3]), point: unescapeMount(fields[4])})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read mount table: %w", err)
	}
	return mounts, nil
}

// unescapeMount undoes the octal escapes of mountinfo: blank, tab, newline and
// backslash.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
