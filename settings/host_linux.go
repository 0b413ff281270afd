package settings

import (
	"io/fs"
	"syscall"
)

const hostPlatform = "linux"

// watchAncestors: inotify costs one watch a directory, so every directory on the way to a file is watched and a rename of any of
// them is seen.
const watchAncestors = true

func signatureOf(info fs.FileInfo) signature {
	sig := signature{size: info.Size(), mode: info.Mode(), mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		sig.dev, sig.ino = uint64(st.Dev), st.Ino                             //nolint:unconvert // Dev has another width on other architectures
		sig.ctimeSec, sig.ctimeNsec = int64(st.Ctim.Sec), int64(st.Ctim.Nsec) //nolint:unconvert // as above
	}
	return sig
}
