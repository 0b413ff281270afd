//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// closings measures how the time to end a session grows with its processes.
func (b *bench) closings() error {
	g := &growth{
		ID: "close", Title: "Closing a session", X: "processes", Y: "ms",
		How: "From `terminal/close` to its answer, which comes when no process of the session is left: " +
			"the median of five.",
	}
	for _, of := range []struct{ name, settings string }{{rowBoxed, b.world.on}, {rowPlain, b.world.off}} {
		s, err := startSidecar(b.world.sidecar, of.settings, b.world.project, b.world.env)
		if err != nil {
			return err
		}
		l := line{Name: of.name}
		for _, count := range []int{1, 100, 1000} {
			var samples []float64
			for range b.rounds(5) {
				took, err := closing(s, count)
				if err != nil {
					s.stop()
					return err
				}
				samples = append(samples, took)
			}
			l.Points = append(l.Points, point{float64(count), median(samples)})
		}
		s.stop()
		g.Lines = append(g.Lines, l)
	}
	b.add(g)
	return nil
}

func closing(of *sidecar, count int) (float64, error) {
	s, err := of.start("/bin/sh", "-c", "i=1; while [ $i -lt "+strconv.Itoa(
		count)+" ]; do sleep 1000 & i=$((i + 1)); done; echo; exec sleep 1000")
	if err != nil {
		return 0, err
	}
	if err := await("output", s.first); err != nil {
		return 0, err
	}
	begun := time.Now()
	err = s.close()
	return milliseconds(time.Since(begun)), err
}

// grants measures how a spawn, and its policy, grow with the number of grants.
func (b *bench) grants() error {
	g := &growth{
		ID: "grants", Title: "Grants", X: "granted directories", Y: "ms",
		How: "\"policy\" is `policy/get`, which compiles a policy. \"spawn\" is the time to the first byte of " +
			"a sandboxed session. \"save\" is from a save of the settings to the notification of the new " +
			"policy. Editors save in steps, so the sidecar waits a little before it reads.",
	}
	policy, spawn, save := line{Name: "policy"}, line{Name: "spawn"}, line{Name: "save"}
	for _, count := range []int{10, 100, 1000} {
		var paths []string
		for i := range count {
			paths = append(paths, filepath.Join(b.world.root, "grants", "d"+strconv.Itoa(i)))
		}
		if err := makeDirs(paths); err != nil {
			return err
		}
		settings := func(last string) (string, error) {
			return b.world.settings("grants", map[string]any{
				"enabled":                    true,
				"additional_read_only_paths": append(append([]string{}, paths[1:]...), last),
			})
		}
		file, err := settings(paths[0])
		if err != nil {
			return err
		}
		s, err := startSidecar(b.world.sidecar, file, b.world.project, b.world.env)
		if err != nil {
			return err
		}
		compiled, spawned, saved, err := b.measureGrants(s, settings)
		s.stop()
		if err != nil {
			return err
		}
		x := float64(count)
		policy.Points = append(policy.Points, point{x, compiled})
		spawn.Points = append(spawn.Points, point{x, spawned})
		save.Points = append(save.Points, point{x, saved})
	}
	g.Lines = []line{policy, spawn, save}
	b.add(g)
	return nil
}

func (b *bench) measureGrants(s *sidecar, settings func(last string) (string, error)) (compiled, spawned,
	saved float64, err error,
) {
	var policies, spawns, saves []float64
	for i := range b.rounds(9) {
		begun := time.Now()
		if _, err := call(s, protocol.PolicyGet, protocol.PolicyGetParams{
			ProjectDir: s.project,
			Kind:       protocol.Terminal,
		}); err != nil {
			return 0, 0, 0, err
		}
		policies = append(policies, milliseconds(time.Since(begun)))
		took, err := firstByte(s)
		if err != nil {
			return 0, 0, 0, err
		}
		spawns = append(spawns, took)
		changed := s.onChange()
		begun = time.Now()
		if _, err := settings(filepath.Join(s.project, "d"+strconv.Itoa(i))); err != nil {
			return 0, 0, 0, err
		}
		if err := await("the new policy", changed); err != nil {
			return 0, 0, 0, fmt.Errorf("save settings: %w", err)
		}
		saves = append(saves, milliseconds(time.Since(begun)))
	}
	return median(policies), median(spawns), median(saves), nil
}
