package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/kernels/result"
)

// outcome is the result of one kernel.
type outcome struct {
	kernel  kernel
	version string
	// missing says why the mirror does not have the kernel; empty if it does.
	// That is no failure: Debian drops kernels.
	missing string
	// err says why there is no result of a kernel that the mirror has.
	err   error
	boots int // attempts
	// emulator is what the emulator of the last attempt complained about.
	emulator string
	wall     time.Duration
	guest    guest
}

// guest is what the guest wrote.
type guest struct {
	begin    *result.Begin
	runs     []result.Run
	contexts []string // in their order
	doctor   map[string]result.Doctor
	notes    []string
	ended    bool
}

// maxLine bounds one line of a guest, far above the output of a suite.
const maxLine = 4 << 20

// read takes the guest's lines. A line that is no JSON comes from the kernel.
func (g *guest) read(r io.Reader) error {
	g.doctor = map[string]result.Doctor{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var line result.Line
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		switch {
		case line.Begin != nil:
			g.begin = line.Begin
		case line.Run != nil:
			g.runs = append(g.runs, *line.Run)
		case line.Doctor != nil:
			g.doctor[line.Doctor.Context] = *line.Doctor
			g.contexts = append(g.contexts, line.Doctor.Context)
		case line.Note != "":
			g.notes = append(g.notes, line.Note)
		case line.End:
			g.ended = true
		}
	}
	return lines.Err()
}

// failures lists failed tests, unproved claims, and suites and kernels that did
// not come to their end.
func (o outcome) failures() (all []string) {
	if o.missing != "" {
		return nil
	}
	if o.err != nil {
		return []string{o.kernel.name + ": has not run: " + o.err.Error()}
	}
	fail := func(format string, args ...any) { all = append(all, o.kernel.name+": "+fmt.Sprintf(format, args...)) }
	if !o.guest.ended {
		fail("the machine did not come to its end in %d boots: %s", o.boots, o.emulator)
	}
	for _, note := range o.guest.notes {
		fail("%s", note)
	}
	for _, context := range o.guest.contexts {
		for _, p := range o.guest.doctor[context].Protections {
			if p.Name == "process_tracking" && p.Status != enforced && (o.escaped() || o.askedOnly()) {
				continue
			}
			if why := unproved(p); why != "" {
				fail("%s: %s is %s: %s", context, p.Name, p.Status, why)
			}
		}
	}
	for _, run := range o.guest.runs {
		for _, test := range run.Failed {
			fail("%s: %s: %s", run.Context, run.Suite, test)
		}
		if run.Exit != 0 && len(run.Failed) == 0 {
			fail("%s: %s: exit status %d", run.Context, run.Suite, run.Exit)
		}
		if run.Exit == 0 && len(run.Passed) == 0 && len(run.Skipped) == 0 {
			fail("%s: %s: no test has run", run.Context, run.Suite)
		}
	}
	for _, s := range o.kernel.suites {
		for _, context := range s.contexts {
			if !o.ran(func(run result.Run) bool { return run.Suite == s.pkg && run.Context == context }) {
				fail("%s: %s has not run", context, s.pkg)
			}
		}
		for _, test := range s.proves {
			if !o.passed(s.pkg, test) {
				fail("%s: %s has not passed as a whole, and nothing else shows what it is about", s.pkg, test)
			}
		}
	}
	return all
}

// notRun says why there is no result of a kernel; "" if there is one.
func (o outcome) notRun() string {
	if o.err != nil {
		return o.err.Error()
	}
	return o.missing
}

func (o outcome) ran(is func(result.Run) bool) bool { return slices.ContainsFunc(o.guest.runs, is) }

// passed reports whether a test has passed in some context with all of its
// parts: a test with skipped parts passes too.
func (o outcome) passed(pkg, test string) bool {
	return o.ran(func(run result.Run) bool {
		return run.Suite == pkg && slices.Contains(run.Passed, test) &&
			!slices.ContainsFunc(run.Skipped, func(skipped string) bool { return strings.HasPrefix(skipped, test+"/") })
	})
}

// escaped reports whether a process has escaped its session on a machine
// without cgroups. doctor's own attacks do not show that.
func (o outcome) escaped() bool { return o.passed(escaping.pkg, escaping.proves[0]) }

// askedOnly reports whether the machine ran no suite, for example because it
// has another processor. Another machine with the same kernel has run them.
func (o outcome) askedOnly() bool { return len(o.guest.runs) == 0 }

// unproved says why a status is not proved; "" if it is. "Enforced" is proved
// by attacks that work without a sandbox and not in a session, anything less by
// one that works in a session. "Degraded" denials are about reads, while the
// attempt is a write.
func unproved(p result.Protection) string {
	counts := map[string]int{}
	better := false
	for _, attack := range p.Attacks {
		counts[attack.Verdict]++
		better = better || attack.Status == enforced && p.Status != enforced
	}
	claimed := p.Status == enforced || p.Name == "denials" && p.Status != "absent"
	switch {
	case counts["broken"] > 0:
		return "an attack works"
	case claimed && counts["held"] == 0:
		return "no attack was held"
	case claimed || better && counts["held"] > 0: // the machine's status is that of its weakest session
		return ""
	case p.Name == "network_hosts" && counts["held"] > 0: // no host can be reached then
		return ""
	case p.Name == "limits" && counts["held"] > 0: // only memory is open, and doctor does not take all of it
		return ""
	case counts["open"] == 0:
		return "no attack has shown that something is open"
	}
	return ""
}

const enforced = "enforced"
