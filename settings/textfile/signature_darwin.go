package textfile

import (
	"io/fs"
	"syscall"
)

// SignatureOf returns the signature of a file as stat(2) describes it.
func SignatureOf(info fs.FileInfo) Signature {
	sig := Signature{Size: info.Size(), mode: info.Mode(), mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		sig.dev, sig.ino = uint64(st.Dev), st.Ino
		sig.ctimeSec, sig.ctimeNsec = st.Ctimespec.Sec, st.Ctimespec.Nsec
	}
	return sig
}
