//go:build linux

package main

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed client.py
var pythonScript []byte

// python is a client that is not ours in any line: it measures a spawn as an
// editor meets it, with the time that a client needs itself.
type python struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// startPython starts one. Without arguments it forks and execs by itself.
func startPython(w *world, arguments ...string) (*python, error) {
	script := filepath.Join(filepath.Dir(w.project), "client.py")
	if err := os.WriteFile(script, pythonScript, 0o600); err != nil {
		return nil, err
	}
	p := &python{command: exec.Command("python3", append([]string{script}, arguments...)...)}
	p.command.Dir, p.command.Env, p.command.Stderr = w.project, w.env, os.Stderr
	in, out, err := startPiped(p.command)
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if line, err := p.out.ReadString('\n'); err != nil || line != "ready\n" {
		p.stop()
		return nil, fmt.Errorf("start client.py: %w", errors.Join(err, errors.New(strings.TrimSpace(line))))
	}
	return p, nil
}

func (p *python) stop() {
	p.in.Close()
	_ = p.command.Wait()
}

// spawn measures once, in ms.
func (p *python) spawn() (value, cpu float64, err error) {
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		return 0, 0, err
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return 0, 0, fmt.Errorf("read from client.py: %w", err)
	}
	value, err = strconv.ParseFloat(strings.TrimSpace(line), 64)
	return value, 0, err
}

// seenByPython measures spawns by a client that is not ours.
func (b *bench) seenByPython() {
	w := b.world
	through := func(settings string) []string {
		return []string{w.project, w.sidecar, "serve", "--log-level", "error", "--settings", settings}
	}
	var list []contestant
	for _, row := range []struct {
		name      string
		arguments []string
	}{{rowBare, nil}, {rowPlain, through(w.off)}, {rowBoxed, through(w.on)}} {
		c := contestant{name: row.name}
		if client, err := startPython(w, row.arguments...); err != nil {
			c.absent = firstLine(err.Error())
		} else {
			defer client.stop()
			c.sample = client.spawn
		}
		list = append(list, c)
	}
	b.add(&table{
		ID: "python", Title: "Spawn to first byte, seen by a client in Python", Unit: "ms", Baseline: rowBare,
		How: "The same, but the client is a script that knows only the protocol. Its own time counts, so the " +
			"ratios are those that an editor meets.",
		Rows: takeTurns(b.rounds(100), b.limit(30*time.Second), list),
	})
}
