package deadline

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onOneProcessor has the calling thread, and what it starts, share a processor
// with a process that never waits.
func onOneProcessor(t *testing.T) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			set.Zero()
			set.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	busy := exec.Command("sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
	})
}

// What works beside another busy process waits for a processor half of its time.
// What sleeps waits for none.
func TestTook_LeavesOutWaitingForAProcessor(t *testing.T) {
	const work = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"
	for name, test := range map[string]struct {
		line    string
		starved bool
	}{"work": {work, true}, "sleep": {"sleep 1", false}} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			go func() { // the thread ends with the goroutine, and its affinity with it
				defer close(done)
				runtime.LockOSThread()
				onOneProcessor(t)
				command := exec.Command("sh", "-c", test.line)
				begun := time.Now()
				if err := command.Start(); err != nil {
					t.Error(err)
					return
				}
				took := Took(command.Process.Pid, func() { _ = command.Wait() })
				waited := time.Since(begun) - took
				t.Logf("%v, and %v without a processor", took, waited)
				if starved := waited > took/4; starved != test.starved {
					t.Errorf("%v of %v without a processor", waited, took+waited)
				}
			}()
			<-done
		})
	}
}

// What starves itself is late all the same. Not parallel, as it keeps all busy.
func TestTook_OfWhatKeepsAllProcessorsBusy(t *testing.T) {
	// All stay in one process group, by which they are killed. The limit is one of
	// processor time, if that fails.
	const loops = `ulimit -t 10; for i in $(seq $(($(nproc) * 4))); do (while :; do :; done) & done; wait`
	busy := exec.Command("sh", "-c", loops)
	busy.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-busy.Process.Pid, unix.SIGKILL)
		_ = busy.Wait()
	})
	const slept = 2 * time.Second
	if took := Took(busy.Process.Pid, func() { time.Sleep(slept) }); took < slept/(1+mostProlonged) {
		t.Errorf("it took %s", took)
	}
}

// A deadline is prolonged while a descendant has no processor, and not otherwise.
// Not parallel, because others would prolong it too.
func TestDeadline_IsProlongedByTheLoad(t *testing.T) {
	const limit = 3 * time.Second
	lasts := func() time.Duration {
		begun := time.Now()
		if New(limit).Wait(nil) {
			t.Error("what never comes has come")
		}
		return time.Since(begun)
	}
	New(0) // the first sample
	idle := lasts()
	done := make(chan struct{})
	go func() { // the thread ends with the goroutine, and its affinity with it
		defer close(done)
		runtime.LockOSThread()
		onOneProcessor(t)
		onOneProcessor(t)
	}()
	<-done
	busy := lasts()
	t.Logf("%v lasts %v, and %v beside a starved process", limit, idle, busy)
	if idle < limit || busy < limit+limit/2 || busy > (1+mostProlonged)*limit+limit {
		t.Errorf("%v lasts %v, and %v beside a starved process", limit, idle, busy)
	}
	begun := time.Now()
	select {
	case <-After(limit):
	case <-time.After(10 * limit):
		t.Error("the channel is not used")
	}
	if took := time.Since(begun); took < limit+limit/2 {
		t.Errorf("the channel lasts %v", took)
	}
	if New(-time.Second).Wait(nil) {
		t.Error("a limit that has passed is waited for")
	}
}
