//go:build linux

package main

import (
	"fmt"
	"math"
)

// target is a goal of the sidecar, and whether it is reached.
type target struct {
	what, target, measured string
	reached                bool
}

// goals are the comparisons of measurements with goals. A goal without a
// measurement is left out.
type goals struct{ list []target }

func (g *goals) atMost(what string, limit, measured float64, unit string) {
	if measured > 0 && !math.IsNaN(measured) {
		g.list = append(g.list, target{what, "≤ " + figure(limit) + unit, figure(measured) + unit, measured <= limit})
	}
}

func (g *goals) atLeast(what string, limit, measured float64) {
	if measured > 0 && !math.IsNaN(measured) {
		g.list = append(g.list, target{what, "≥ " + figure(limit) + " ×", figure(measured) + " ×", measured >= limit})
	}
}

// targets compares the measurements with the goals.
func (b *bench) targets() []target {
	var g goals
	for _, s := range b.sections {
		switch s := s.(type) {
		case *table:
			g.ofTable(s)
		case *growth:
			g.ofGrowth(s, b.idle)
		case *matrix:
			if s.ID == "work" {
				for _, column := range s.Columns {
					g.atMost(column+", over no sandbox", limitOf(column), s.ratioOf(rowBoxed, column), " ×")
				}
			}
		}
	}
	return g.list
}

func (g *goals) ofTable(s *table) {
	switch s.ID {
	case "spawn":
		g.atMost("sandboxed spawn to first byte, over the unsandboxed one", 1.25,
			s.over(rowBoxed, rowPlain), " ×")
		g.atLeast("codex's app-server over a sandboxed spawn", 10, s.over(rowCodex, rowBoxed))
	case "audit":
		g.atMost("spawn with an audit trail in a file, over none", 1.02, s.over(rowFile, rowNoTrail), " ×")
		g.atMost("spawn with a required audit trail in a file, over none", 1.02,
			s.over(rowRequired, rowNoTrail), " ×")
		g.atMost("spawn with an audit trail in the journal, over none", 1.02,
			s.over(rowJournal, rowNoTrail), " ×")
	case "audit-exec":
		g.atMost("exec of /bin/true with an audit trail in a file, over none", 1.02,
			s.over(rowFile, rowNoTrail), " ×")
	case "python":
		g.atMost("sandboxed spawn over the unsandboxed one, seen by a client in Python", 1.25,
			s.over(rowBoxed, rowPlain), " ×")
		g.atMost("unsandboxed spawn over a bare PTY, seen by a client in Python", 1,
			s.over(rowPlain, rowBare), " ×")
	case "exec":
		g.atMost("exec of /bin/true, over bubblewrap with equal protection", 1.25,
			s.over(rowOffline, equal), " ×")
		for _, r := range s.Rows {
			if r.Absent == "" && !ours(r.Name) && r.Name != rowNone && r.Name != equal &&
				r.Name != "bubblewrap, least" {
				g.atMost("exec of /bin/true, over "+r.Name, 1, s.over(rowBoxed, r.Name), " ×")
			}
		}
	case "large-exec":
		g.atMost("exec of /bin/true in a large repository, over an empty project", 1.05,
			s.over(rowLarge, rowEmpty), " ×")
	case "large-status":
		g.atMost("git status in a large repository, over no sandbox", 1.06, s.over(rowBoxed, rowNone), " ×")
	case "large-end":
		if r, ok := s.find(rowLarge); ok {
			g.atMost("end of a session in a large repository", 2, median(r.Samples), " ms")
		}
	case "output":
		g.atLeast("output, over a bare PTY's", 0.75, s.over(rowBoxed, rowBare))
		g.atLeast("output, over node-pty's with JSON frames", 1, s.over(rowBoxed, rowFramed))
		g.atLeast("output, over codex's", 1, s.over(rowBoxed, rowCodex))
	case "losses":
		if r, ok := s.find(rowBoxed); ok {
			g.list = append(g.list, target{
				"commands whose output was lost", "0", figure(median(r.Samples)),
				median(r.Samples) == 0,
			})
		}
	case "connect":
		boxed, _ := s.find(rowHosts)
		g.atMost("connecting to an allowed host, longer than without a sandbox", 1,
			median(boxed.Samples)-median(s.baseline()), " ms")
	case "download-gigabit":
		g.atLeast("download at a gigabit from an allowed host, over no sandbox", 0.9, s.over(rowHosts, rowNone))
	case "download":
		g.atLeast("download from an allowed host on the loopback interface, over no sandbox", 0.9,
			s.over(rowHosts, rowNone))
	case "echo", "flooded":
		g.atMost(s.Title+", over a bare PTY's", 2, s.over(rowBoxed, rowBare), " ×")
	}
}

// ofGrowth takes the memory of sidecars without sessions, in MiB.
func (g *goals) ofGrowth(s *growth, idle map[string]float64) {
	if s.ID == "memory" {
		g.atMost("memory of the sidecar without sessions", 20, idle[rowBoxed], " MiB")
		for _, l := range s.Lines {
			if last := len(l.Points) - 1; ours(l.Name) && last > 0 {
				perSession := (l.Points[last].Y - idle[l.Name]) * 1024 / l.Points[last].X
				g.atMost(fmt.Sprintf("memory of each of %.0f sessions, %s", l.Points[last].X, l.Name), 150,
					perSession, " KiB")
			}
		}
		return
	}
	for _, l := range s.Lines {
		if e := l.exponent(); e != 0 {
			g.atMost(fmt.Sprintf("%s (%s): power of its growth", s.Title, l.Name), 1.1, max(0.01, e), "")
		}
	}
}

// over is the ratio of two rows; 0 if one is absent.
func (t *table) over(name, baseline string) float64 {
	r, ok := t.find(name)
	base, known := t.find(baseline)
	if !ok || !known {
		return 0
	}
	return ratio(r.Samples, base.Samples)
}
