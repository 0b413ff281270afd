package settings

import (
	"io/fs"
	"os"
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

// private returns an error unless the file is the user's own and nobody else can write it.
func private(info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return errNotPrivate
	}
	return nil
}
