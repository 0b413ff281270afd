package fsguard

import "fmt"

// Call is a call of another package. The path must be absolute. Of an error only
// the text and the system's error number come back from the helper.
type Call func(path string, data []byte) (answer []byte, err error)

// defined are the calls of other packages.
var defined = map[operation]Call{}

// Define makes a call of another package one that an unresponsive file system
// cannot block. The helper must know it too, so Define is for variables of
// packages. A symlink at the end of the path tells the file system, too.
func Define(name string, call Call) Call {
	op := operation(name)
	if defined[op] != nil {
		panic(fmt.Sprintf("fsguard: %s is defined twice", name))
	}
	defined[op] = call
	return func(path string, data []byte) ([]byte, error) {
		remote, _, err := follow(path)
		if err != nil {
			return nil, err
		}
		if remote == nil {
			return call(path, data)
		}
		done, err := remote.call(request{Op: op, Path: text(path), Data: data})
		return done.Data, err
	}
}
