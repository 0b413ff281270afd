//go:build linux

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// section is anything that is written into the document.
type section interface {
	markdown(io.Writer)
	plot(io.Writer)
	benchstat(io.Writer)
}

// bench is one run.
type bench struct {
	world    *world
	peers    *peers
	quick    bool
	sections []section
	// facts are printed below the machine's.
	facts []string
	// idle is the memory of hosts without sessions, in MiB.
	idle map[string]float64
}

func (b *bench) add(s section) { b.sections = append(b.sections, s) }

// rounds is how often something is measured.
func (b *bench) rounds(full int) int {
	if b.quick {
		return max(3, full/5)
	}
	return full
}

// limit is how long that may take.
func (b *bench) limit(full time.Duration) time.Duration {
	if b.quick {
		return full / 5
	}
	return full
}

func main() {
	var options struct {
		sidecar, stopwatch, peers, out, only string
		quick                                bool
	}
	flag.StringVar(&options.sidecar, "sidecar", "bin/sandbox-sidecar", "the program to measure")
	flag.StringVar(&options.stopwatch, "stopwatch", "", "tests/stopwatch, built; built anew where it is empty")
	flag.StringVar(&options.peers, "peers", "build/bench", "where install-peers has put its programs")
	flag.StringVar(&options.out, "out", "docs",
		"directory to write performance.md and performance/*.svg to; - prints the tables alone")
	flag.StringVar(&options.only, "only", "", "the one part to measure: "+partNames())
	flag.BoolVar(&options.quick, "quick", false, "measure less")
	flag.Parse()
	if err := run(options.sidecar, options.stopwatch, options.peers, options.out, options.only,
		options.quick); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// parts are measured in this order.
var parts = []struct {
	name    string
	measure func(*bench) error
}{
	{"spawn", func(b *bench) error { b.spawns(); return nil }},
	{"audit", (*bench).trails},
	{"memory", (*bench).memory},
	{"output", (*bench).outputs},
	{"echo", (*bench).keys},
	{"calls", func(b *bench) error { b.calls(); return nil }},
	{"work", (*bench).labours},
	{"network", (*bench).networks},
	{"close", (*bench).closings},
	{"large", (*bench).large},
	{"grants", (*bench).grants},
}

func partNames() string {
	text := ""
	for _, part := range parts {
		text += part.name + " "
	}
	return text
}

func run(program, stopwatch, dir, out, only string, quick bool) error {
	// Other programs may use the machine. Only root may take precedence over
	// them.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -10)
	begun := time.Now()
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if stopwatch == "" {
		stopwatch = filepath.Join(dir, "bin", "stopwatch")
		build := exec.Command("go", "build", "-trimpath", "-o", stopwatch, "./tests/stopwatch")
		build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("build tests/stopwatch: %w", err)
		}
	}
	w, err := newWorld(program, stopwatch)
	if err != nil {
		return fmt.Errorf("make a place to measure in: %w", err)
	}
	defer w.tidy()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, unix.SIGINT, unix.SIGTERM)
	go func() {
		<-interrupted
		w.tidy() // the hosts end with their pipes
		os.Exit(1)
	}()
	b := &bench{world: w, peers: findPeers(dir, w), quick: quick, idle: map[string]float64{}}
	for _, part := range parts {
		if only != "" && part.name != only {
			continue
		}
		started := time.Now()
		fmt.Fprintf(os.Stderr, "bench: %s\n", part.name)
		if err := part.measure(b); err != nil {
			return fmt.Errorf("measure %s: %w", part.name, err)
		}
		fmt.Fprintf(os.Stderr, "bench: %s took %d s\n", part.name, int(time.Since(started).Seconds()))
	}
	if out == "-" {
		for _, s := range b.sections {
			s.markdown(os.Stdout)
		}
		return nil
	}
	return b.write(out, filepath.Join(dir, "benchstat.txt"), time.Since(begun))
}
