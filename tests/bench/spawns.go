//go:build linux

package main

import (
	"fmt"
	"time"
)

// spawns measures how long it takes until a program runs.
func (b *bench) spawns() {
	h := openHosts(b.world, b.peers)
	defer h.stop()
	if boxed, ok := h.get(rowBoxed).(*sidecar); ok {
		if got, err := boxed.sandboxed(); err == nil {
			b.facts = append(b.facts, "the sandboxed sessions: "+got)
		}
	}
	b.add(&table{
		ID: "spawn", Title: "Spawn to first byte", Unit: "ms", Baseline: rowBare,
		How: "From the request, through the host's protocol if it has one, to the first byte of `echo` on " +
			"a terminal. The hosts are warm. Only the sidecar and codex confine the program.",
		Rows: takeTurns(b.rounds(100), b.limit(40*time.Second), h.contestants(firstByte, rowNode)),
	})
	b.seenByPython()
	b.launches()
	b.starts()
}

// launches measures commands that run one program and end.
func (b *bench) launches() {
	var list []contestant
	add := func(l launcher) {
		list = append(list, contestant{name: l.name, absent: l.absent, sample: func() (float64, float64, error) {
			_, wall, cpu, err := l.launch(b.world.project, "/bin/true")
			return wall, cpu, err
		}})
	}
	for _, l := range b.all() {
		add(l)
	}
	b.add(&table{
		ID: "exec", Title: "Launching /bin/true", Unit: "ms", Baseline: equal,
		How: "One command that starts a sandbox, runs `/bin/true` in it and ends, from cold. \"Equal " +
			"protection\" is bubblewrap with user, IPC, network and process namespaces, a /dev and a " +
			"/proc of its own. All but the project is read-only. Processor time includes the children " +
			"that the command waited for.",
		Rows: takeTurns(b.rounds(30), b.limit(45*time.Second), list),
	})
}

// all are the launchers, the sidecar's and the one without a sandbox first.
func (b *bench) all() []launcher {
	return append([]launcher{
		{name: rowNone, argv: func(command ...string) []string { return command }, env: b.world.env},
		{name: rowPlain, argv: b.exec(b.world.off), env: b.world.env},
		{name: rowBoxed, argv: b.exec(b.world.on), env: b.world.env},
		{name: rowOffline, argv: b.exec(b.world.offline), env: b.world.env},
	}, b.peers.launchers...)
}

// exec is the command line of the sidecar's exec with a settings file.
func (b *bench) exec(settings string) func(...string) []string {
	return func(command ...string) []string {
		return append([]string{b.world.sidecar, "exec", "--kind", "tool", "--settings", settings, "--"}, command...)
	}
}

const rowNone = "no sandbox"

// starts measures the hosts themselves.
func (b *bench) starts() {
	start := func(begin func() (host, error)) func() (float64, float64, error) {
		return func() (float64, float64, error) {
			begun := time.Now()
			h, err := begin()
			if err != nil {
				return 0, 0, err
			}
			took := milliseconds(time.Since(begun))
			cpu := cpuOf(h.pid())
			h.stop()
			return took, cpu, nil
		}
	}
	missing := func(path string) string {
		if path == "" {
			return "not installed"
		}
		return ""
	}
	w := b.world
	b.add(&table{
		ID: "initialize", Title: "Start to readiness", Unit: "ms", Baseline: rowBoxed,
		How: "From the start of the process to its answer to `initialize`. By then the sidecar has tested " +
			"what it can enforce. node-pty is ready when node has loaded it.",
		Rows: takeTurns(b.rounds(20), b.limit(20*time.Second), []contestant{
			{name: rowBoxed, sample: start(func() (host, error) {
				return startSidecar(w.sidecar, w.on, w.project, w.env)
			})},
			{name: rowPlain, sample: start(func() (host, error) {
				return startSidecar(w.sidecar, w.off, w.project, w.env)
			})},
			{name: rowCodex, absent: missing(b.peers.codex), sample: start(func() (host, error) {
				return startCodex(b.peers.codex, w.project, b.peers.codexEnv(w))
			})},
			{name: rowNode, absent: missing(b.peers.nodePTY), sample: start(func() (host, error) {
				return startNode(b.peers.nodePTY, w.project, false)
			})},
		}),
	})
}

// memory measures the hosts with idle sessions.
func (b *bench) memory() error {
	counts := []int{1, 10, 100, 500}
	if b.quick {
		counts = counts[:3]
	}
	g := &growth{
		ID: "memory", Title: "Memory", X: "sessions", Y: "MiB",
		How: "Resident memory of the host with idle sessions, each a `sleep` on a terminal, without the " +
			"program itself. The sidecar's includes its watchdog. The first row is the host with one " +
			"session. The memory without sessions is in the list at the top.",
	}
	w := b.world
	for _, candidate := range []struct {
		name  string
		start func() (host, error)
		most  int
		have  bool
	}{
		{rowBoxed, func() (host, error) { return startSidecar(w.sidecar, w.on, w.project, w.env) }, 500, true},
		{rowPlain, func() (host, error) { return startSidecar(w.sidecar, w.off, w.project, w.env) }, 500, true},
		{rowCodex, func() (host, error) {
			return startCodex(b.peers.codex, w.project, b.peers.codexEnv(w))
		}, 10, b.peers.codex != ""},
		{rowFramed, func() (host, error) {
			return startNode(b.peers.nodePTY, w.project, true)
		}, 100, b.peers.nodePTY != ""},
	} {
		if !candidate.have {
			continue
		}
		l, idle, err := grow(candidate.start, counts, candidate.most)
		if err != nil {
			return fmt.Errorf("%s: %w", candidate.name, err)
		}
		l.Name = candidate.name
		g.Lines = append(g.Lines, l)
		b.facts = append(b.facts, fmt.Sprintf("%s with no session: %.1f MiB", candidate.name, idle))
		b.idle[candidate.name] = idle
	}
	b.add(g)
	return nil
}

// grow starts sessions up to each count. It returns the host's memory at each,
// and before.
func grow(start func() (host, error), counts []int, most int) (l line, idle float64, err error) {
	h, err := start()
	if err != nil {
		return l, 0, err
	}
	defer h.stop()
	// Go and node return memory late, so the host is used once before it is
	// measured.
	if _, err := firstByte(h); err != nil {
		return l, 0, err
	}
	idle = resident(h.pid())
	running := 0
	for _, count := range counts {
		if count > most {
			break
		}
		for ; running < count; running++ {
			s, err := h.start("/bin/sh", "-c", "echo; exec sleep 1000")
			if err != nil {
				return l, 0, err
			}
			if err := await("output", s.first); err != nil {
				return l, 0, err
			}
		}
		l.Points = append(l.Points, point{float64(count), resident(h.pid())})
	}
	return l, idle, nil
}
