//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	rowNoTrail  = "no trail"
	rowNoTrail2 = "no trail, another sidecar"
	rowFile     = `"audit": "file"`
	rowRequired = `"audit": "file", required`
	rowJournal  = `"audit": "journal"`
)

// trails measures what the audit trail costs. The same sidecar without one takes
// part twice: what these two differ is noise.
func (b *bench) trails() error {
	j := startJournald()
	defer j.stop()
	var list, commands []contestant
	for _, row := range []struct {
		name   string
		keys   map[string]any
		absent string
	}{
		{name: rowNoTrail},
		{name: rowNoTrail2},
		{name: rowFile, keys: map[string]any{"audit": "file"}},
		{name: rowRequired, keys: map[string]any{"audit": "file", "audit_required": true}},
		{name: rowJournal, keys: map[string]any{"audit": "journal"}, absent: j.absent},
	} {
		if row.absent != "" {
			list = append(list, contestant{name: row.name, absent: row.absent})
			continue
		}
		keys := map[string]any{"enabled": true}
		for key, value := range row.keys {
			keys[key] = value
		}
		settings, err := b.world.settings(fmt.Sprintf("trail-%d", len(list)), keys)
		if err != nil {
			return err
		}
		h, err := startSidecarIn(j.place, b.world.sidecar, settings, b.world.project, b.world.env)
		if err != nil {
			return err
		}
		defer h.stop()
		list = append(list, contestant{name: row.name, sample: func() (float64, float64, error) {
			before := cpuOf(h.pid())
			value, err := firstByte(h)
			return value, cpuOf(h.pid()) - before, err
		}})
		if row.name == rowJournal {
			continue // a command in its place takes longer
		}
		l := launcher{env: b.world.env, argv: b.exec(settings)}
		name := strings.Replace(row.name, "sidecar", "time", 1)
		commands = append(commands, contestant{name: name, sample: func() (float64, float64, error) {
			_, wall, cpu, err := l.launch(b.world.project, "/bin/true")
			return wall, cpu, err
		}})
	}
	b.add(&table{
		ID: "audit", Title: "Spawn to first byte with an audit trail", Unit: "ms", Baseline: rowNoTrail, Close: true,
		How: "From the request to the first byte of `echo` on a terminal, by the same program with other settings. " +
			"Two sidecars without a trail show how much chance alone makes. The journal is a real journald.",
		Rows: takeTurns(b.rounds(2000), b.limit(120*time.Second), list),
	})
	b.add(&table{
		ID: "audit-exec", Title: "Launching /bin/true with an audit trail", Unit: "ms", Baseline: rowNoTrail,
		Close: true,
		How: "One command from its start to its end, which waits until its lines are written. " +
			"Processor time includes " +
			"the children that it waited for.",
		Rows: takeTurns(b.rounds(500), b.limit(30*time.Second), commands),
	})
	return nil
}

// journald is a real one, in a mount namespace of its own.
type journald struct {
	// place is the command that starts others in that namespace.
	place []string
	// absent says why there is none. Others start where they are then.
	absent string
	stop   func()
}

// startJournald starts one whose entries stay in memory.
func startJournald() journald {
	none := func(why string) journald { return journald{absent: why, stop: func() {}} }
	if os.Geteuid() != 0 {
		return none("journald needs root")
	}
	const program = "/lib/systemd/systemd-journald"
	for _, needed := range []string{program, "/etc/machine-id"} {
		if _, err := os.Stat(needed); err != nil {
			return none("there is no " + needed)
		}
	}
	command := exec.Command("unshare", "--mount", "/bin/sh", "-ec", `
		mount -t tmpfs tmpfs /run
		echo 0123456789abcdef0123456789abcdef > /run/machine-id
		mount --bind /run/machine-id /etc/machine-id
		mkdir -p /run/systemd/journal /run/log/journal/0123456789abcdef0123456789abcdef
		"$1" & journald=$!
		trap 'kill $journald' EXIT
		n=0; until [ -S /run/systemd/journal/socket ]; do n=$((n+1)); [ $n != 100 ]; sleep 0.1; done
		echo ready
		read end || true`, "sh", program)
	in, out, err := startPiped(command)
	if err != nil {
		return none(firstLine(err.Error()))
	}
	j := journald{
		place: []string{"nsenter", fmt.Sprintf("--mount=/proc/%d/ns/mnt", command.Process.Pid), "--"},
		stop: func() {
			in.Close()
			_ = command.Wait()
		},
	}
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil || strings.TrimSpace(said) != "ready" {
		j.stop()
		if errors.Is(err, io.EOF) {
			err = errNoAnswer
		}
		return none(fmt.Sprintf("journald: %v", err))
	}
	return j
}
