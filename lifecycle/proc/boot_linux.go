package proc

import (
	"fmt"
	"os"
	"strings"
)

// BootID identifies this start of the machine; see random(4).
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("find boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// AutogroupID identifies the setsid(2) call whose session a process is in;
// empty if the kernel does not report it. It is the number of the process's
// autogroup (sched(7)). Each such call makes one, fork(2) inherits it, and
// nobody can enter another's. No number is used twice while the machine runs.
func AutogroupID(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid))
	if err != nil {
		return ""
	}
	id, _, _ := strings.Cut(string(text), " ")
	return strings.TrimSpace(id)
}
