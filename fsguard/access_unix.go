//go:build unix

package fsguard

import "golang.org/x/sys/unix"

// Access is access(2): an error unless a file's permissions allow the user what
// mode says, such as unix.R_OK.
func Access(path string, mode uint32) error {
	_, err := access(path, []byte{byte(mode)})
	return err
}

var access = Define("access", func(path string, mode []byte) ([]byte, error) {
	return nil, unix.Access(path, uint32(mode[0]))
})
