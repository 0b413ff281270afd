package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Other tests of this process start threads too, and the runtime ends none. So
// there are at least as many as were reserved.
func TestReserveThreads(t *testing.T) {
	t.Parallel()
	const reserved = 40
	ReserveThreads(reserved)
	tasks, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(os.Getpid()), "task"))
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) < reserved {
		t.Errorf("%d threads", len(tasks))
	}
}
