package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// row is the table's line for a context on a kernel.
type row struct {
	enforced, degraded, absent int // protections
	// attacks in sandboxed sessions; expected are those that the reply reports
	// as stopped
	stopped, expected, open int
	passed, skipped, failed int // tests
	seconds                 float64
}

func (o outcome) row(context string) (r row) {
	doctor := o.guest.doctor[context]
	r.seconds = doctor.Seconds
	for _, p := range doctor.Protections {
		switch p.Status {
		case enforced:
			r.enforced++
		case "degraded":
			r.degraded++
		default:
			r.absent++
		}
		for _, attack := range p.Attacks {
			switch attack.Verdict {
			case "held":
				r.stopped, r.expected = r.stopped+1, r.expected+1
			case "broken":
				r.expected++
			case "open":
				r.open++
			}
		}
	}
	for _, run := range o.guest.runs {
		if run.Context != context {
			continue
		}
		r.passed, r.skipped, r.failed = r.passed+len(run.Passed), r.skipped+len(run.Skipped), r.failed+len(run.Failed)
		r.seconds += run.Seconds
		r.stopped += run.Tally["stopped"]
		r.expected += run.Tally["stopped"] + run.Tally["HOLE"]
		r.open += run.Tally["open, said"]
	}
	return r
}

// announce prints a line when a machine has ended.
func (o outcome) announce(w io.Writer) {
	switch why := o.notRun(); {
	case why != "":
		fmt.Fprintf(w, "%s: not run: %s\n", o.kernel.name, why)
	case !o.guest.ended:
		fmt.Fprintf(w, "%s: did not come to its end, %.0f s\n", o.kernel.name, o.wall.Seconds())
	default:
		fmt.Fprintf(w, "%s: %.0f s\n", o.kernel.name, o.wall.Seconds())
	}
}

// summary is the table that a run ends with.
func summary(w io.Writer, outcomes []outcome) {
	fmt.Fprintf(w, "%-20s %-19s %8s %8s %6s   %7s %4s   %6s %7s %6s %8s\n",
		"kernel", "context", "enforced", "degraded", "absent", "stopped", "open", "passed", "skipped",
		"failed", "seconds")
	for _, o := range outcomes {
		if why := o.notRun(); why != "" {
			fmt.Fprintf(w, "%-20s not run: %s\n", o.kernel.name, why)
			continue
		}
		for _, context := range o.guest.contexts {
			r := o.row(context)
			fmt.Fprintf(w, "%-20s %-19s %8d %8d %6d   %7s %4d   %6d %7d %6d %8.1f\n", o.kernel.name,
				context, r.enforced, r.degraded, r.absent,
				fmt.Sprintf("%d/%d", r.stopped, r.expected), r.open, r.passed, r.skipped, r.failed, r.seconds)
		}
		fmt.Fprintf(w, "%-20s %s, Landlock %s, started in %.1f s, %d boot(s), %.1f s\n", "", o.version,
			o.abi(), o.started(), o.boots, o.wall.Seconds())
	}
}

// skipped lists the features that tests lacked, each once, with the places.
func skipped(w io.Writer, outcomes []outcome) {
	where := map[string]int{}
	for _, o := range outcomes {
		for _, run := range o.guest.runs {
			for _, test := range run.Skipped {
				where[run.Suite+": "+test]++
			}
		}
	}
	var names []string
	for name, times := range where {
		names = append(names, fmt.Sprintf("skipped %2d times: %s", times, name))
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintln(w, name)
	}
}

// slowest lists the suites by their time on all kernels.
func slowest(w io.Writer, outcomes []outcome) {
	for _, o := range outcomes {
		for _, run := range o.guest.runs {
			fmt.Fprintf(w, "%6.1f s  %s %s %s\n", run.Seconds, o.kernel.name, run.Context, run.Suite)
		}
	}
}

func (o outcome) abi() string {
	if o.guest.begin == nil {
		return "unknown"
	}
	if o.guest.begin.ABI <= 0 {
		return "absent"
	}
	return fmt.Sprintf("ABI %d", o.guest.begin.ABI)
}

func (o outcome) started() float64 {
	if o.guest.begin == nil {
		return 0
	}
	return o.guest.begin.Seconds
}

// total is the time and the download of a run.
func total(w io.Writer, took time.Duration, bytes int64) {
	fmt.Fprintf(w, "%.0f s in all, %d MB downloaded\n", took.Seconds(), bytes>>20)
}
