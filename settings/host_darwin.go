package settings

import (
	"io/fs"
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
