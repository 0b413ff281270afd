package settings

import (
	"io/fs"
	"os"
	"syscall"
)

const hostPlatform = "darwin"

// watchAncestors: kqueue opens every entry of a watched directory, which for
// the home directory is many descriptors and may make the system ask the user
// about Documents and Downloads. Only the directories that decide about a file
// are watched.
const watchAncestors = false

func signatureOf(info fs.FileInfo) signature {
	sig := signature{size: info.Size(), mode: info.Mode(), mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		sig.dev, sig.ino = uint64(st.Dev), st.Ino
		sig.ctimeSec, sig.ctimeNsec = st.Ctimespec.Sec, st.Ctimespec.Nsec
	}
	return sig
}

// private returns an error unless the file is the user's own and nobody else
// can write it.
func private(info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return errNotPrivate
	}
	return nil
}

// deafFileSystem names the file system of a directory where kqueue does not
// hear of every change; else "".
func deafFileSystem(dir string) string {
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
