package harness

import (
	"runtime"
	"testing"
	"time"
)

// tries is how often Quick repeats what took too long.
const tries = 5

// Quick fails a test if something takes longer than a limit each time that it
// is tried. do returns how long it took. A busy machine may stop any process for
// seconds; a product that waits where it must not waits each time.
func Quick(t testing.TB, what string, limit time.Duration, do func() time.Duration) {
	t.Helper()
	fastest := time.Duration(0)
	for try := range tries {
		took := do()
		if took <= limit {
			t.Logf("%s: took %v", what, took.Round(time.Millisecond))
			return
		}
		if try == 0 || took < fastest {
			fastest = took
		}
	}
	t.Errorf("%s: took %v at best of %d times, want %v at most", what, fastest.Round(time.Millisecond), tries, limit)
}

// Linear fails a test if work on n things takes more than ten times as long as
// work on a quarter of them. Where the way is quadratic, it takes 16 times as
// long. Both are measured in turns, and the fastest of each counts. Only the
// caller's own work counts, not what other programs take meanwhile. But they empty
// the processor's caches, which concerns the larger one most, so what takes too
// long is tried more often than Quick would.
func Linear(t testing.TB, n int, work func(n int)) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fewest, most := time.Duration(1<<62), time.Duration(1<<62)
	for try := range 5 * tries {
		begun := threadTime()
		work(n / 4)
		middle := threadTime()
		work(n)
		fewest, most = min(fewest, middle-begun), min(most, threadTime()-middle)
		if try > 0 && most <= 10*fewest {
			t.Logf("%d take %v, and %d take %v", n/4, fewest, n, most)
			return
		}
	}
	t.Errorf("%d take %v, and %d take %v: more than ten times as long", n/4, fewest, n, most)
}
