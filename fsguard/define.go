package fsguard

import (
	"fmt"
	"io/fs"
	"syscall"
)

// mostData bounds the data of a defined call, which the helper gets in one
// message.
const mostData = 40 << 10

// defined are the calls of other packages.
var defined = map[operation]func(path string, data []byte) error{}

// Define makes a call of another package one that an unresponsive file system
// cannot block. The call gets a path, which must be absolute, and at most 40 KiB
// of data. The helper must know it too, so Define is for variables of packages.
func Define(name string, call func(path string, data []byte) error) func(path string, data []byte) error {
	op := operation(name)
	if defined[op] != nil {
		panic(fmt.Sprintf("fsguard: %s is defined twice", name))
	}
	defined[op] = call
	return func(path string, data []byte) error {
		if len(data) > mostData {
			return &fs.PathError{Op: name, Path: path, Err: syscall.EMSGSIZE}
		}
		remote, _, err := follow(path)
		if err != nil {
			return err
		}
		if remote == nil {
			return call(path, data)
		}
		_, err = remote.call(request{Op: op, Path: text(path), Data: data})
		return err
	}
}
