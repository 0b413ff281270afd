//go:build !linux

package review

import (
	"os"
	"testing"
)

// asOrdinaryUser skips a test that root cannot make: root reads every
// directory.
func asOrdinaryUser(t *testing.T, _ string) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root reads every directory, and only a thread of Linux can be another user")
	}
}
