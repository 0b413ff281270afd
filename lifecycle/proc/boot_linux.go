package proc

import (
	"fmt"
	"os"
	"strings"
)

// bootID identifies this start of the machine; see random(4).
func BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("ask for this start of the machine: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// autogroupID identifies the setsid(2) call whose session a process is in;
// empty where the kernel does not tell. It is the number of the process's
// autogroup (sched(7)): each such call makes one, fork(2) inherits it, nobody
// can enter another's, and no number is given away twice while the machine
// runs.
func AutogroupID(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid))
	if err != nil {
		return ""
	}
	id, _, _ := strings.Cut(string(text), " ")
	return strings.TrimSpace(id)
}
