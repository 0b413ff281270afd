package audit

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// deniedEnv makes this binary a process that is denied something, as often as
// the value says, once its standard input ends.
const deniedEnv = "SIDECAR_TEST_DENIED"

func TestMain(m *testing.M) {
	if os.Getenv(deniedEnv) == "" {
		os.Exit(m.Run())
	}
	if err := beDenied(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func beDenied() error {
	runtime.LockOSThread()
	var times int
	if _, err := fmt.Sscan(os.Getenv(deniedEnv), &times); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := denyListing(); err != nil {
		return err
	}
	for range times {
		if err := list(); err != nil {
			return err
		}
	}
	return nil
}

var testLog = sync.OnceValues(Open)

// deny starts a process that is denied something. It returns what was reported
// of it, and its pid.
func deny(t *testing.T, log *Log, times int) (denials []Denial, lost, pid int) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", deniedEnv, times))
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards the results
	watch := log.Watch(command.Process.Pid, func(r Denial) {
		mu.Lock()
		defer mu.Unlock()
		denials = append(denials, r)
	}, func() {
		mu.Lock()
		defer mu.Unlock()
		lost++
	})
	input.Close()
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	watch.Close()
	watch.Close()
	mu.Lock()
	defer mu.Unlock()
	return denials, lost, command.Process.Pid
}

// Each watch gets every denial of its own process before it is closed.
func TestLog_ReportsDenials(t *testing.T) {
	t.Parallel()
	log, err := testLog()
	if err != nil {
		harness.Skip(t, "audit_log", err.Error())
	}
	var all sync.WaitGroup
	for times := range 4 {
		all.Go(func() {
			denials, lost, pid := deny(t, log, times)
			if len(denials) != times || lost != 0 {
				t.Errorf("denied %d times, %d losses, and reported %+v", times, lost, denials)
			}
			for _, r := range denials {
				if r.Path != "/" || !slices.Equal(r.Blockers, []string{"fs.read_dir"}) || r.PID != pid ||
					r.Process == "" ||
					r.Call.Arch == 0 {
					t.Errorf("process %d, reported: %+v", pid, r)
				}
			}
		})
	}
	all.Wait()
	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.watches) != 0 || len(log.domains) != 0 {
		t.Errorf("left: %v, %v", log.watches, log.domains)
	}
}

// Every watch learns that records were dropped.
func TestLog_ReportsLoss(t *testing.T) {
	t.Parallel()
	log := &Log{watches: map[int]*Watch{}, domains: map[uint64]*Watch{}}
	lost := 0
	log.Watch(1, func(Denial) {}, func() { lost++ })
	log.Watch(2, func(Denial) {}, func() { lost++ })
	log.reportLoss()
	if lost != 2 {
		t.Errorf("%d watches learned of it", lost)
	}
}

// If the log cannot be read, Open returns an error.
func TestOpen_ReturnsAReason(t *testing.T) {
	t.Parallel()
	if log, err := testLog(); (log == nil) != (err != nil) {
		t.Fatalf("%v, %v", log, err)
	} else if err != nil && err.Error() == "" {
		t.Error("the error is empty")
	} else if err != nil {
		t.Log(err)
	}
}
