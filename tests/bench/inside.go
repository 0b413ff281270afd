//go:build linux

package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// calls measures system calls inside each sandbox, by tests/stopwatch. A figure
// is the minimum of all rounds, because load only adds.
func (b *bench) calls() {
	least := map[string]map[string]float64{} // call, launcher, µs
	var names []string
	var list []contestant
	for _, l := range b.all() {
		list = append(list, contestant{name: l.name, absent: l.absent, sample: func() (float64, float64, error) {
			dir, err := os.MkdirTemp(b.world.project, "calls")
			if err != nil {
				return 0, 0, err
			}
			command := []string{b.world.stopwatch, dir}
			if l.noSockets {
				command = append(command, "no-sockets")
			}
			output, wall, _, err := l.launch(b.world.project, command...)
			if err != nil {
				return 0, 0, err
			}
			for text := range strings.Lines(output) {
				name, value, _ := strings.Cut(strings.TrimSpace(text), " ")
				nanoseconds, err := strconv.ParseFloat(value, 64)
				if err != nil {
					continue // a line of the peer's own
				}
				if least[name] == nil {
					least[name] = map[string]float64{}
					names = append(names, name)
				}
				if before, known := least[name][l.name]; !known || nanoseconds/1e3 < before {
					least[name][l.name] = nanoseconds / 1e3
				}
			}
			return wall, 0, nil
		}})
	}
	rows := takeTurns(b.rounds(8), b.limit(45*time.Second), list)
	m := &matrix{
		ID: "calls", Title: "System calls inside", Baseline: rowNone,
		How: "The time of one call in µs, and its ratio to that without a sandbox: the minimum of all " +
			"rounds. `exec` is fork, exec and exit of `/bin/true`. connect-unix connects to a socket of " +
			"the session itself. Before Linux 7.1 the sidecar makes that connection, because the kernel " +
			"cannot tell whose socket it is.",
		Columns: names,
	}
	for _, r := range rows {
		if r.Absent == "" {
			m.add(r.Name, func(column string) float64 { return least[column][r.Name] })
		}
	}
	b.add(m)
}

// work is one piece of everyday work.
type work struct {
	name  string
	needs string // a program
	// prepare makes what it works on, in a directory of its own.
	prepare func(dir string) error
	// before is done before each measurement; empty if nothing is.
	before string
	script string
	// limit is the target of its ratio to no sandbox.
	limit float64
}

// limitOf returns the target for a work by name.
func limitOf(name string) float64 {
	for _, do := range works {
		if do.name == name {
			return do.limit
		}
	}
	return 1
}

var works = []work{
	{"git status, 5,000 files", "git", manyFiles, "", "git status --porcelain", 1.03},
	{"go build", "go", goProgram, "", `echo "// $RANDOM$RANDOM" >> main.go && GOFLAGS=-mod=mod GOCACHE=$PWD/cache ` +
		`GOPATH=$PWD/path GOTMPDIR=$PWD go build -buildvcs=false -o program .`, 1.03},
	{
		"npm test", "npm", npmProject, "",
		"npm_config_cache=$PWD/cache npm_config_update_notifier=false npm test --silent", 1.03,
	},
	{"gcc, 300 headers", "gcc", manyHeaders, "", "TMPDIR=$PWD gcc -c main.c -o main.o", 1.03},
	{"cp -r, 2,000 files", "cp", smallFiles, "rm -rf copy", "cp -r files copy", 1.15},
	{"rm -r, 2,000 files", "rm", smallFiles, "rm -rf copy && cp -r files copy", "rm -r copy", 1.15},
}

// labours measures ordinary work inside each sandbox, without the launch.
func (b *bench) labours() error {
	m := &matrix{
		ID: "work", Title: "Work inside", Baseline: rowNone,
		How: "The time of the work in ms, without the launch: the median, and the ratio to that without a " +
			"sandbox, round by round.",
	}
	chosen := map[string]bool{
		rowNone: true, rowBoxed: true, rowOffline: true, equal: true, "landlock-restrict": true,
		"codex sandbox": true,
	}
	values := map[string]map[string][]float64{}
	var order []string
	for i, do := range works {
		if look(do.needs) == "" {
			b.facts = append(b.facts, do.name+": absent, because "+do.needs+" is not installed")
			continue
		}
		dir := filepath.Join(b.world.project, "work"+strconv.Itoa(i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := do.prepare(dir); err != nil {
			return fmt.Errorf("prepare %s: %w", do.name, err)
		}
		// The shell itself measures the time, so that neither the launch nor
		// another program counts.
		script := "cd " + dir + " && { " + cmp.Or(do.before, ":") + "; } && begun=${EPOCHREALTIME//[!0-9]} && { " +
			do.script + "; } >/dev/null 2>complaints && ended=${EPOCHREALTIME//[!0-9]} && " +
			"echo took $((ended - begun)) || { cat complaints >&2; exit 1; }"
		var list []contestant
		for _, l := range b.all() {
			if !chosen[l.name] {
				continue
			}
			list = append(list, contestant{name: l.name, absent: l.absent, sample: func() (float64, float64, error) {
				output, _, _, err := l.launch(b.world.project, "/bin/bash", "-c", script)
				if err != nil {
					return 0, 0, err
				}
				_, text, found := strings.Cut(output, "took ")
				microseconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
				if !found || err != nil {
					return 0, 0, fmt.Errorf("measure %s: it says %q", do.name, output)
				}
				return microseconds / 1e3, 0, nil
			}})
		}
		m.Columns = append(m.Columns, do.name)
		for _, r := range takeTurns(b.rounds(15), b.limit(18*time.Second), list) {
			if values[r.Name] == nil {
				values[r.Name] = map[string][]float64{}
				order = append(order, r.Name)
			}
			values[r.Name][do.name] = r.Samples
		}
	}
	for _, name := range order {
		m.addSamples(name, func(column string) []float64 { return values[name][column] })
	}
	b.add(m)
	return nil
}

func manyFiles(dir string) error {
	for i := range 5000 {
		sub := filepath.Join(dir, "d"+strconv.Itoa(i%100))
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(sub, "f"+strconv.Itoa(i)), []byte("x"), 0o600); err != nil {
			return err
		}
	}
	return inDir(dir, "git", "-c", "init.defaultBranch=main", "init", "-q", ".")
}

// smallFiles makes 2,000 files of 2 KiB in 40 directories.
func smallFiles(dir string) error {
	for i := range 2000 {
		sub := filepath.Join(dir, "files", "d"+strconv.Itoa(i%40))
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(sub, "f"+strconv.Itoa(i)), make([]byte, 2048), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func goProgram(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module hello\n\ngo 1.26\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "main.go"),
		[]byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(1) }\n"), 0o600)
}

func npmProject(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "package.json"),
		[]byte(`{"name":"t","version":"1.0.0","scripts":{"test":"node --test"}}`), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "a.test.js"), []byte("require('node:test')('t', () => {});\n"), 0o600)
}

func manyHeaders(dir string) error {
	var main strings.Builder
	for i := range 300 {
		name := "h" + strconv.Itoa(i) + ".h"
		text := fmt.Sprintf("#include <stdint.h>\nstatic inline int f%d(int a) { return a + %d; }\n", i, i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
		fmt.Fprintf(&main, "#include %q\n", name)
	}
	main.WriteString("int main(void) { return f299(1); }\n")
	return os.WriteFile(filepath.Join(dir, "main.c"), []byte(main.String()), 0o600)
}

func inDir(dir, program string, args ...string) error {
	command := exec.Command(program, args...)
	command.Dir = dir
	return command.Run()
}
