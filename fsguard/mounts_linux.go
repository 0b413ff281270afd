package fsguard

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// isLocal reports whether a kind of file system answers without another machine
// or another process. An overlay does if its layers do. An unknown kind counts
// as remote.
func isLocal(kind string) bool {
	switch kind {
	case "adfs", "affs", "bcachefs", "befs", "bfs", "binfmt_misc", "bpf", "btrfs", "cgroup", "cgroup2",
		"configfs", "cpuset", "cramfs", "debugfs", "devpts", "devtmpfs", "ecryptfs", "efivarfs", "efs", "erofs",
		"exfat", "ext2", "ext3", "ext4", "f2fs", "fusectl", "hfs", "hfsplus", "hugetlbfs", "iso9660", "jffs2",
		"jfs", "minix", "mqueue", "msdos", "nilfs2", "nsfs", "ntfs", "ntfs3", "overlay", "pipefs", "proc",
		"pstore", "ramfs", "reiserfs", "resctrl", "romfs", "rootfs", "securityfs", "selinuxfs", "smackfs",
		"sockfs", "squashfs", "sysfs", "tmpfs", "tracefs", "ubifs", "udf", "ufs", "vfat", "xfs", "zfs", "zonefs":
		return true
	}
	return false
}

var mountTable struct {
	mu   sync.Mutex // guards the fields below
	file *os.File   // nil before the first read, and if there is no such table
	last *mounts
}

// table is the current mount table.
func table() *mounts {
	t := &mountTable
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil && t.file == nil {
		return t.last
	}
	if t.file == nil {
		t.last = &mounts{root: -1}
		fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return t.last // without /proc nothing is guarded, and little else works
		}
		t.file = os.NewFile(uintptr(fd), "mountinfo")
	} else if !changed(int(t.file.Fd())) {
		return t.last
	}
	if text, err := io.ReadAll(io.NewSectionReader(t.file, 0, 64<<20)); err == nil {
		t.last = newMounts(parseMounts(string(text)))
	}
	return t.last
}

// changed reports whether mounts have changed since the last call (POLLPRI on
// the table, proc(5)).
func changed(fd int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}, 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0 || err != nil
		}
	}
}

// parseMounts parses /proc/PID/mountinfo (proc(5)).
func parseMounts(text string) []mount {
	var list []mount
	for line := range strings.Lines(text) {
		before, after, found := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(kind) == 0 {
			continue
		}
		id, err := strconv.Atoi(fields[0])
		parent, err2 := strconv.Atoi(fields[1])
		if err != nil || err2 != nil {
			continue
		}
		list = append(list, mount{
			id: id, parent: parent, device: fields[2], point: unescape.Replace(fields[4]),
			kind: kind[0],
		})
	}
	return list
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#")
