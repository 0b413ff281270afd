//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tick is the unit of processor time in /proc, 1/100 s on every Linux.
const tick = 10.0

// cpuOf is the processor time of a process and of the children that it has
// waited for, in ms; 0 for no process. It is coarse, so only means of many
// samples are useful.
func cpuOf(pid int) float64 {
	if pid == 0 {
		return 0
	}
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// The name, in parentheses, may hold any character.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	sum := 0.0
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime; see proc_pid_stat(5)
		ticks, _ := strconv.ParseFloat(field, 64)
		sum += ticks * tick
	}
	return sum
}

// resident is the memory of a process, and of the sidecar's watchdog if that is
// its child, in MiB.
func resident(pid int) float64 {
	sum := rss(pid)
	children, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	for _, file := range children {
		list, _ := os.ReadFile(file)
		for child := range strings.FieldsSeq(string(list)) {
			name, _ := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
			if bytes.HasPrefix(name, []byte("sandbox-sidecar\x00")) {
				number, _ := strconv.Atoi(child)
				sum += proportional(number)
			}
		}
	}
	return sum
}

func rss(pid int) float64 { return rollup(pid, "Rss:") }

// proportional is the memory that a process adds. It shares pages with the
// sidecar, because it is the same program.
func proportional(pid int) float64 { return rollup(pid, "Pss:") }

func rollup(pid int, field string) float64 {
	data, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	for text := range strings.Lines(string(data)) {
		if fields := strings.Fields(text); len(fields) > 1 && fields[0] == field {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			return kib / 1024
		}
	}
	return 0
}
