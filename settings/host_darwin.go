package settings

import (
	"io/fs"
	"os"
	"syscall"
)

const hostPlatform = "darwin"

// watchAncestors: kqueue opens every entry of a watched directory, which for the home directory is many descriptors and may make
// the system ask the user about Documents and Downloads. Only the directories that decide about a file are watched.
const watchAncestors = false

func signatureOf(info fs.FileInfo) signature {
	sig := signature{size: info.Size(), mode: info.Mode(), mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		sig.dev, sig.ino = uint64(st.Dev), st.Ino
		sig.ctimeSec, sig.ctimeNsec = st.Ctimespec.Sec, st.Ctimespec.Nsec
	}
	return sig
}

// private returns an error unless the file is the user's own and nobody else can write it.
func private(info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return errNotPrivate
	}
	return nil
}
