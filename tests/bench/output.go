//go:build linux

package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// outputs measures output from a program to a client.
func (b *bench) outputs() error {
	h := openHosts(b.world, b.peers)
	defer h.stop()
	size := 64 << 20
	if b.quick {
		size = 16 << 20
	}
	file, err := b.world.text("large", size)
	if err != nil {
		return err
	}
	b.add(&table{
		ID: "output", Title: "Output", Unit: "MB/s", Baseline: rowBare, MoreIsBetter: true,
		How: fmt.Sprintf("`cat` of a file of %d MB, from the request to its end, on a terminal with its default "+
			"modes. The client only counts. \"node-pty\" counts in its own process; with JSON frames it "+
			"sends them to another process. A host that lost a byte in any round has no figure, except "+
			"node-pty.",
			size>>20),
		Rows: takeTurns(b.rounds(20), b.limit(60*time.Second), h.contestants(func(of host) (float64, error) {
			begun := time.Now()
			s, err := of.start("/bin/cat", file)
			if err != nil {
				return 0, err
			}
			if err := await("a program's end", s.exited); err != nil {
				return 0, err
			}
			took := time.Since(begun)
			if _, lossy := of.(*node); !lossy && s.read.Load() != int64(size) {
				return 0, fmt.Errorf("%w: %d of %d bytes arrived", errLost, s.read.Load(), size)
			}
			return float64(size) / 1e6 / took.Seconds(), s.close()
		})),
	})
	return b.losses(h)
}

// keys measures keystrokes from the client to the screen.
func (b *bench) keys() error {
	h := openHosts(b.world, b.peers)
	defer h.stop()
	b.echoes(h, nil)
	return b.flooded(h)
}

// losses counts short commands whose output did not arrive completely.
func (b *bench) losses(h *hosts) error {
	const size = 200_000
	file, err := b.world.text("short", size)
	if err != nil {
		return err
	}
	count := b.rounds(1000)
	t := &table{
		ID: "losses", Title: "Lost output", Unit: "commands",
		How: fmt.Sprintf("The number of commands whose output did not arrive whole, of %d that write %d bytes and "+
			"end.", count, size),
	}
	for _, n := range h.list {
		r := row{Name: n.name, Absent: n.absent}
		if n.name == rowFramed || n.name == rowCodex {
			continue // codex takes long, and the frames lose nothing more
		}
		lost := 0
		for range count {
			if r.Absent != "" {
				break
			}
			s, err := n.host.start("/bin/cat", file)
			if err == nil {
				err = await("a program's end", s.exited)
			}
			if err == nil && s.read.Load() != size {
				lost++
			}
			if err == nil {
				err = s.close()
			}
			if err != nil {
				r.Absent = firstLine(err.Error())
			}
		}
		if r.Absent == "" {
			r.Samples = []float64{float64(lost)}
		}
		t.Rows = append(t.Rows, r)
	}
	b.add(t)
	return nil
}

// echoed is a program that answers each byte with itself.
var echoed = []string{"/bin/sh", "-c", "stty raw -echo; echo r; exec cat"}

// keystrokes is the number of keystrokes in one sample.
const keystrokes = 50

// echoes measures keystrokes.
func (b *bench) echoes(h *hosts, flood func(host) (stop func(), err error)) {
	t := &table{
		ID: "echo", Title: "Keystroke echo", Unit: "µs", Baseline: rowBare,
		How: "From a typed byte to its echo by `cat` on a raw terminal: the median of 50, with pauses as " +
			"in typing.",
	}
	if flood != nil {
		t.ID, t.Title = "flooded", "Keystroke echo while another session floods"
		t.How += " Meanwhile another session of the same host writes without end, and the client reads all " +
			"its output."
	}
	list := h.contestants(func(of host) (float64, error) {
		if flood != nil {
			stop, err := flood(of)
			if err != nil {
				return 0, err
			}
			defer stop()
		}
		return roundTrip(of)
	}, rowNode)
	if flood != nil {
		for i := range list {
			if list[i].name == rowCodex && list[i].absent == "" {
				list[i].absent = "not tried: it does not keep up"
			}
		}
	}
	t.Rows = takeTurns(b.rounds(10), b.limit(30*time.Second), list)
	b.add(t)
}

var errNoEcho = errors.New("no echo")

func roundTrip(of host) (float64, error) {
	s, err := of.start(echoed...)
	if err != nil {
		return 0, err
	}
	if err := await("output", s.first); err != nil {
		return 0, err
	}
	time.Sleep(20 * time.Millisecond) // the shell becomes cat
	var samples []float64
	for range keystrokes {
		for len(s.heard) > 0 {
			<-s.heard
		}
		begun := time.Now()
		if err := s.write([]byte{'x'}); err != nil {
			return 0, err
		}
		timer := time.NewTimer(timeout)
		select {
		case <-s.heard:
			timer.Stop()
		case <-timer.C:
			return 0, errNoEcho
		}
		samples = append(samples, float64(time.Since(begun).Nanoseconds())/1e3)
		// typing has pauses; the sidecar may gather output that follows other
		// output within 2 ms
		time.Sleep(3 * time.Millisecond)
	}
	return median(samples), s.close()
}

// flooded measures keystrokes while another session writes.
func (b *bench) flooded(h *hosts) error {
	file, err := b.world.text("flood", 1<<20)
	if err != nil {
		return err
	}
	b.echoes(h, func(of host) (func(), error) {
		s, err := of.start("/bin/sh", "-c", "while cat "+strconv.Quote(file)+"; do :; done")
		if err != nil {
			return nil, err
		}
		return func() { _ = s.close() }, await("output", s.first)
	})
	return nil
}
