//go:build linux

package main

import (
	"errors"
	"time"
)

// The names of rows that targets refer to.
const (
	rowBare    = "bare PTY"
	rowPlain   = "sidecar, unsandboxed"
	rowBoxed   = "sidecar, sandboxed"
	rowCodex   = "codex app-server"
	rowNode    = "node-pty"
	rowFramed  = "node-pty, JSON frames"
	rowOffline = "sidecar, sandboxed, no network"
)

// hosts are running hosts by their row's name.
type hosts struct {
	list []namedHost
}

type namedHost struct {
	name, note string
	host       host
	absent     string
}

// openHosts starts everything that has terminals.
func openHosts(w *world, p *peers) *hosts {
	h := &hosts{}
	add := func(name string, start func() (host, error), missing bool) {
		n := namedHost{name: name}
		if missing {
			n.absent = "not installed"
		} else if started, err := start(); err != nil {
			n.absent = firstLine(err.Error())
		} else {
			n.host = started
		}
		h.list = append(h.list, n)
	}
	add(rowBare, func() (host, error) { return bare{w.project}, nil }, false)
	add(rowPlain, func() (host, error) { return startSidecar(w.sidecar, w.off, w.project, w.env) }, false)
	add(rowBoxed, func() (host, error) { return startSidecar(w.sidecar, w.on, w.project, w.env) }, false)
	add(rowCodex, func() (host, error) { return startCodex(p.codex, w.project, p.codexEnv(w)) }, p.codex == "")
	add(rowNode, func() (host, error) { return startNode(p.nodePTY, w.project, false) }, p.nodePTY == "")
	add(rowFramed, func() (host, error) { return startNode(p.nodePTY, w.project, true) }, p.nodePTY == "")
	return h
}

func (h *hosts) stop() {
	for _, n := range h.list {
		if n.host != nil {
			n.host.stop()
		}
	}
}

func (h *hosts) get(name string) host {
	for _, n := range h.list {
		if n.name == name {
			return n.host
		}
	}
	return nil
}

// contestants makes one for each host but those left out.
func (h *hosts) contestants(measure func(host) (float64, error), without ...string) []contestant {
	var list []contestant
next:
	for _, n := range h.list {
		for _, name := range without {
			if n.name == name {
				continue next
			}
		}
		list = append(list, contestant{
			name: n.name, note: n.note, absent: n.absent,
			sample: func() (float64, float64, error) {
				before := cpuOf(n.host.pid())
				value, err := measure(n.host)
				return value, cpuOf(n.host.pid()) - before, err
			},
		})
	}
	return list
}

// firstByte is the time from the request to the first byte of a program's
// output, in ms.
func firstByte(h host) (float64, error) {
	begun := time.Now()
	s, err := h.start("/bin/echo", "x")
	if err != nil {
		return 0, err
	}
	if err := await("output", s.first); err != nil {
		return 0, err
	}
	took := milliseconds(time.Since(begun))
	if err := await("a program's end", s.exited); err != nil {
		return 0, err
	}
	return took, s.close()
}

var errLost = errors.New("output was lost")
