package reserve

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// The reserve is left only while a leader is started, and a small limit keeps
// most of what it is.
func TestLeave(t *testing.T) {
	t.Parallel()
	before := processLimit(t, Keep) // as another test may leave the reserve now
	if before.Cur == unix.RLIM_INFINITY {
		before.Cur = 4000 // the test's own, which ends with it
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &before); err != nil {
			t.Fatal(err)
		}
	}
	failed := errors.New("failed")
	err := Leave(func() error {
		if now := processLimit(t, atOnce); now.Cur != before.Cur-size(before.Cur) || now.Max != before.Max {
			t.Errorf("meanwhile %+v, before %+v", now, before)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("error is %v", err)
	}
	if after := processLimit(t, Keep); after != before {
		t.Errorf("after it %+v, before %+v", after, before)
	}
	for limit, want := range map[uint64]uint64{63_000: 64, 256: 64, 100: 25, 3: 0, 0: 0} {
		if got := size(limit); got != want {
			t.Errorf("reserve of %d is %d, want %d", limit, got, want)
		}
	}
}

// atOnce calls read without waiting for anybody.
func atOnce(read func() error) error { return read() }

func processLimit(t *testing.T, when func(read func() error) error) (limit unix.Rlimit) {
	t.Helper()
	if err := when(func() error { return unix.Getrlimit(unix.RLIMIT_NPROC, &limit) }); err != nil {
		t.Fatal(err)
	}
	return limit
}
