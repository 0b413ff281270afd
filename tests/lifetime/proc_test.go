package lifetime

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// parent is a process's parent: field 4 of /proc/PID/stat, counted behind the command name.
func parent(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	n, err := strconv.Atoi(strings.Fields(after)[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
