package textfile

import (
	"io/fs"
	"syscall"
)

// SignatureOf returns the signature of a file as stat(2) describes it.
func SignatureOf(info fs.FileInfo) Signature {
	sig := Signature{Size: info.Size(), mode: info.Mode(), mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		sig.dev, sig.ino = uint64(st.Dev), st.Ino //nolint:unconvert // other widths elsewhere

		sig.ctimeSec, sig.ctimeNsec = int64(st.Ctim.Sec), int64(st.Ctim.Nsec) //nolint:unconvert // as above
	}
	return sig
}
