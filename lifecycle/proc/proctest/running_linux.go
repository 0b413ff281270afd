package proctest

import (
	"bytes"
	"os"
	"strconv"
)

// Running reports whether a process has this id and is no zombie. A process
// whose first thread has ended shows as a zombie while its other threads run.
func Running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from field 3 on, see proc_pid_stat(5)
	if err != nil || len(fields) < 18 {
		return false
	}
	threads, _ := strconv.Atoi(string(fields[17]))
	return fields[0][0] != 'X' && (fields[0][0] != 'Z' || threads > 1)
}
