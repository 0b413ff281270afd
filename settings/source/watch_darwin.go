package source

import (
	"syscall"
)

// Platform is this system's name in settings files.
const Platform = "darwin"

// watchAncestors: kqueue opens every entry of a watched directory. For the home
// directory that is many descriptors, and the system may ask the user about
// Documents and Downloads. So only the directories that decide about a file are
// watched.
const watchAncestors = false

// unreliableFileSystem names the file system of a directory if kqueue does not
// report every change there; else "".
func unreliableFileSystem(dir string) string {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil {
		return ""
	}
	var name []byte
	for _, c := range stat.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	switch kind := string(name); kind {
	case "nfs", "smbfs", "afpfs", "webdav", "macfuse", "osxfuse", "fusefs":
		return kind
	}
	return ""
}
