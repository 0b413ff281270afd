//go:build !linux

package fsguard

import "errors"

// transport has a call made by a thread of this process's own.
func transport(q request) <-chan answer { return inProcess(q) }

// performHere would make the calls that only Linux has, which nobody asks for
// here.
func performHere(q request) (int, error) { return q.handed, errors.ErrUnsupported }
