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

// unreliableFileSystems change files without inotify's knowledge, because
// another machine or another kernel does it. From statfs(2) and the kernel's
// include/uapi/linux/magic.h.
var unreliableFileSystems = map[int64]string{
	0x6969: "NFS", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x517b: "SMB", 0x65735546: "FUSE", 0x01021997: "9P",
	0x786f4256: "VirtualBox",
	0x00c36400: "Ceph", 0x5346414f: "AFS", 0x73757245: "Coda", 0x0bd00bd0: "Lustre",
}

// unreliableFileSystem names the file system of a directory if inotify does not
// report every change there; else "".
func unreliableFileSystem(dir string) string {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil {
		return ""
	}
	return unreliableFileSystems[int64(uint32(stat.Type))] // the type's width and sign depend on the architecture
}
