package source

import (
	"syscall"
)

// watchAncestors: kqueue opens every entry of a watched directory, which for
// the home directory is many descriptors and may make the system ask the user
// about Documents and Downloads. Only the directories that decide about a file
// are watched.
const watchAncestors = false

// unreliableFileSystem names the file system of a directory where kqueue does not
// hear of every change; else "".
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
