package proc

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// stalled returns for how long, since the machine has started, some process has
// waited for a processor, for memory, or for a disk, added up; 0 if the kernel does
// not say so (CONFIG_PSI; Linux 4.20).
func stalled() time.Duration {
	var sum time.Duration
	for _, resource := range []string{"cpu", "memory", "io"} {
		text, err := os.ReadFile("/proc/pressure/" + resource)
		if err == nil {
			sum += someStalled(string(text))
		}
	}
	return sum
}

// someStalled reads the total of the line "some" (Documentation/accounting/psi.rst).
// It is in microseconds.
func someStalled(pressure string) time.Duration {
	for line := range strings.Lines(pressure) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "some" {
			continue
		}
		for _, field := range fields[1:] {
			if total, found := strings.CutPrefix(field, "total="); found {
				microseconds, _ := strconv.ParseInt(total, 10, 64)
				return time.Duration(microseconds) * time.Microsecond
			}
		}
	}
	return 0
}
