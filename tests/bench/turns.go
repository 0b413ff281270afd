//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// contestant is one row of a table that is being measured.
type contestant struct {
	name, note string
	// sample measures once. It returns the figure, and the processor time in
	// ms, 0 if that is not known.
	sample func() (value, cpu float64, err error)
	// absent says why there is nothing to measure.
	absent string
}

// takeTurns lets the contestants measure in rounds, in another order each
// round, so that other load hits all alike. It ends after that many rounds, or,
// after a few, when the time is up. A contestant that fails is left out.
func takeTurns(rounds int, limit time.Duration, contestants []contestant) []row {
	rows := make([]row, len(contestants))
	for i, c := range contestants {
		rows[i] = row{Name: c.name, Note: c.note, Absent: c.absent}
	}
	const few = 3
	begun := time.Now()
	for round := -1; round < rounds; round++ { // the first one warms up
		if round > few && time.Since(begun) > limit {
			break
		}
		for _, i := range rand.Perm(len(contestants)) {
			if rows[i].Absent != "" {
				continue
			}
			value, cpu, err := contestants[i].sample()
			switch {
			case err != nil:
				fmt.Fprintf(os.Stderr, "bench: %s: %v\n", rows[i].Name, err)
				rows[i] = row{Name: rows[i].Name, Absent: firstLine(err.Error())}
			case round >= 0:
				rows[i].Samples = append(rows[i].Samples, value)
				rows[i].CPU += cpu
			}
		}
	}
	for i := range rows {
		rows[i].CPU /= float64(max(1, len(rows[i].Samples)))
	}
	return rows
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// launch runs a command to its end and returns the time that it took, all in
// ms.
func (l launcher) launch(dir string, command ...string) (output string, wall, cpu float64, err error) {
	argv := l.argv(command...)
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = dir, l.env
	var out, complaint strings.Builder
	c.Stdout, c.Stderr = &out, &complaint
	begun := time.Now()
	err = c.Run()
	wall = milliseconds(time.Since(begun))
	if err != nil {
		return "", 0, 0, fmt.Errorf("%w: %s", err, firstLine(strings.TrimSpace(complaint.String())))
	}
	usage := c.ProcessState.SysUsage().(*syscall.Rusage)
	return out.String(), wall, float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6, nil
}
