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

// refusedEnv makes this binary one that is refused something, as often as its
// value says, once its standard input ends.
const refusedEnv = "SIDECAR_TEST_REFUSED"

func TestMain(m *testing.M) {
	if os.Getenv(refusedEnv) == "" {
		os.Exit(m.Run())
	}
	if err := beRefused(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func beRefused() error {
	runtime.LockOSThread()
	var times int
	if _, err := fmt.Sscan(os.Getenv(refusedEnv), &times); err != nil {
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

// refuse lets somebody be refused, and returns what was told of him, and who he
// was.
func refuse(t *testing.T, log *Log, times int) (denials []Denial, lost, pid int) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", refusedEnv, times))
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

// Each watch hears of what its own process is refused, to the last, before it
// is closed.
func TestLog_TellsWhoWasRefused(t *testing.T) {
	t.Parallel()
	log, err := testLog()
	if err != nil {
		harness.Skip(t, "audit_log", err.Error())
	}
	var all sync.WaitGroup
	for times := range 4 {
		all.Go(func() {
			denials, lost, pid := refuse(t, log, times)
			if len(denials) != times || lost != 0 {
				t.Errorf("refused %d times, %d losses, and told %+v", times, lost, denials)
			}
			for _, r := range denials {
				if r.Path != "/" || !slices.Equal(r.Blockers, []string{"fs.read_dir"}) || r.PID != pid || r.Process == "" ||
					r.Call.Arch == 0 {
					t.Errorf("process %d, told: %+v", pid, r)
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

// What the kernel had to drop is said to everybody who may have missed
// something.
func TestLog_SaysThatRecordsAreLost(t *testing.T) {
	t.Parallel()
	log := &Log{watches: map[int]*Watch{}, domains: map[uint64]*Watch{}}
	lost := 0
	log.Watch(1, func(Denial) {}, func() { lost++ })
	log.Watch(2, func(Denial) {}, func() { lost++ })
	log.reportLoss()
	if lost != 2 {
		t.Errorf("%d were told", lost)
	}
}

// Where the log cannot be read, nobody is made to believe that it is.
func TestOpen_SaysWhyItCannot(t *testing.T) {
	t.Parallel()
	if log, err := testLog(); (log == nil) != (err != nil) {
		t.Fatalf("%v, %v", log, err)
	} else if err != nil && err.Error() == "" {
		t.Error("no word why")
	} else if err != nil {
		t.Log(err)
	}
}
