package source

import (
	"syscall"
)

// watchAncestors: inotify costs one watch a directory, so every directory on
// the way to a file is watched and a rename of any of them is seen.
const watchAncestors = true

// deafFileSystems are those whose files change without inotify's knowledge,
// because another machine or another kernel does it. From statfs(2) and the
// kernel's include/uapi/linux/magic.h.
var unreliableFileSystems = map[int64]string{
	0x6969: "NFS", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x517b: "SMB", 0x65735546: "FUSE", 0x01021997: "9P", 0x786f4256: "VirtualBox",
	0x00c36400: "Ceph", 0x5346414f: "AFS", 0x73757245: "Coda", 0x0bd00bd0: "Lustre",
}

// deafFileSystem names the file system of a directory where inotify does not
// hear of every change; else "".
func unreliableFileSystem(dir string) string {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil {
		return ""
	}
	return unreliableFileSystems[int64(uint32(stat.Type))] // the type's width and sign depend on the architecture
}
