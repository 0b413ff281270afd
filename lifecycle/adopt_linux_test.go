package lifecycle

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

func init() { proctest.Helpers["adopt"] = adopter }

// adopter plays a sidecar that adopts. An orphan becomes its child and is
// reaped. The end of its own child, which nobody waits for meanwhile, is not
// lost.
func adopter([]string) {
	tracker := Open(Options{Adopt: true})
	quick, err := proc.Start("/bin/sh", []string{"sh", "-c", "exit 7"}, &os.ProcAttr{})
	if err != nil {
		panic(err)
	}
	out, err := exec.Command("/bin/sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		panic(err)
	}
	orphan, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		panic(err)
	}
	entry, err := proc.Find(orphan)
	fmt.Println("the orphan's parent is me:", err == nil && entry.Parent == os.Getpid())
	if err := unix.Kill(orphan, unix.SIGKILL); err != nil {
		panic(err)
	}
	fmt.Println("the orphan is gone:", deadline.Until(proctest.Timeout, func() bool {
		_, err := proc.Find(orphan)
		return err != nil
	}))
	status, err := quick.Wait(false)
	fmt.Println("status", status.ExitStatus(), err)
	if err := tracker.Close(); err != nil {
		panic(err)
	}
	var is int32
	_ = unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&is)), 0, 0, 0)
	fmt.Println("adopts after its end:", is != 0)
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	command := proctest.Helper("adopt")
	command.Stdin = strings.NewReader("")
	out, err := command.Output()
	want := "the orphan's parent is me: true\nthe orphan is gone: true\nstatus 7 <nil>\nadopts after its end: false\n"
	if err != nil || string(out) != want {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestAdopt_IsNotDoneUnasked(t *testing.T) {
	t.Parallel()
	var is int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&is)), 0, 0, 0); err != nil || is != 0 {
		t.Errorf("this process adopts: %d, %v", is, err)
	}
}
