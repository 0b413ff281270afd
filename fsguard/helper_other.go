//go:build !linux

package fsguard

import "errors"

// transport has a thread of this process make a call.
func transport(q request) <-chan answer { return inProcess(q) }

// performHere refuses the calls that exist only on Linux.
func performHere(q request) (int, error) { return q.passed, errors.ErrUnsupported }
