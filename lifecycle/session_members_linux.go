package lifecycle

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
)

// sessionMembers lists the living processes whose session id is sid, zombies not counted.
func sessionMembers(sid int) ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var members []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // ended since the directory was read
		}
		if err != nil {
			return nil, err
		}
		if state, session, ok := parseStat(stat); ok && session == sid && state != 'Z' && state != 'X' {
			members = append(members, pid)
		}
	}
	return members, nil
}

// parseStat takes state and session (fields 3 and 6 of proc_pid_stat(5)) out of /proc/PID/stat. The command name in field 2 may
// itself hold blanks and parentheses, so the fields are counted from its last ")".
func parseStat(stat []byte) (state byte, session int, ok bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, 0, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 4 || len(fields[0]) != 1 {
		return 0, 0, false
	}
	session, err := strconv.Atoi(string(fields[3]))
	return fields[0][0], session, err == nil
}
