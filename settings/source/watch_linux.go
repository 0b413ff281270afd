package source

import (
	"syscall"
)

// Platform is this system's name in settings files.
const Platform = "linux"

// watchAncestors: inotify needs one watch for each directory. So every
// directory on the way to a file is watched, and a rename of any of them is
// noticed.
const watchAncestors = true

// unreliableFileSystem names the file system of a directory if inotify does not
// report every change there, because another machine or another kernel changes
// files; else "". The numbers are those of statfs(2) and of the kernel's
// include/uapi/linux/magic.h.
func unreliableFileSystem(dir string) string {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil {
		return ""
	}
	switch uint32(stat.Type) { // the type's width and sign depend on the architecture
	case 0x6969:
		return "NFS"
	case 0xff534d42, 0xfe534d42, 0x517b:
		return "SMB"
	case 0x65735546:
		return "FUSE"
	case 0x01021997:
		return "9P"
	case 0x786f4256:
		return "VirtualBox"
	case 0x00c36400:
		return "Ceph"
	case 0x5346414f:
		return "AFS"
	case 0x73757245:
		return "Coda"
	case 0x0bd00bd0:
		return "Lustre"
	}
	return ""
}
