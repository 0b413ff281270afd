package darwin

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// compilerOf is a sidecar's knowledge of a fake compiler, and what it logs.
func compilerOf(t *testing.T, file, build string, try tryProfile) (*compiler, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	return &compiler{
		file: file, system: func() (int, string) { return 14, build }, try: try,
		log: slog.New(slog.NewTextHandler(log, nil)),
	}, log
}

// Sessions that start at the same time wait for one search. It is said once.
func TestCompiler_SearchesOnce(t *testing.T) {
	t.Parallel()
	fake := fakeCompiler{refuses: []string{"FSIOC_CAS_BSDFLAGS"}}
	c, log := compilerOf(t, "", "23J631", fake.try)
	var all sync.WaitGroup
	var left atomic.Int32
	for range 20 {
		all.Go(func() {
			if finding := c.find(t.Context()); len(finding.Dialect.Lines) == 1 {
				left.Add(1)
			}
		})
	}
	all.Wait()
	if left.Load() != 20 || fake.tries > 15 {
		t.Errorf("%d of 20 know it, after %d tries", left.Load(), fake.tries)
	}
	said := strings.Count(log.String(), "level=WARN")
	if said != 1 || !strings.Contains(log.String(), "FSIOC_CAS_BSDFLAGS") {
		t.Errorf("said %d times: %s", said, log)
	}
}

// A session that gives up does not end the search of others.
func TestCompiler_ACallerMayGiveUp(t *testing.T) {
	t.Parallel()
	started, answer := make(chan struct{}), make(chan struct{})
	c, _ := compilerOf(t, "", "", func(context.Context, Profile) (Typing, error) {
		close(started)
		<-answer
		return TypingDenied, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if finding := c.find(ctx); finding.Untried == "" || finding.Refusal != "" {
		t.Errorf("gave up: %+v", finding)
	}
	close(answer)
	if finding := c.find(t.Context()); finding.Dialect.Typing != TypingDenied {
		t.Errorf("waited: %+v", finding)
	}
}

// What one sidecar has found, the next one on the same build of macOS reads.
func TestCompiler_KeepsWhatItFoundByBuild(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "seatbelt.json")
	fake := fakeCompiler{refuses: []string{"FSIOC_CAS_BSDFLAGS"}, typing: TypingDenied}
	find := func(build string) (Finding, int, string) {
		fake.tries = 0
		c, log := compilerOf(t, file, build, fake.try)
		return c.find(t.Context()), fake.tries, log.String()
	}
	first, tries, _ := find("23J631")
	if tries < 2 || len(first.Faults) != 1 {
		t.Fatalf("%+v after %d tries", first, tries)
	}
	again, tries, said := find("23J631")
	if tries != 0 || len(again.Faults) != 1 || again.Dialect.Typing != TypingDenied || said != "" {
		t.Errorf("the same build: %+v after %d tries, said %s", again, tries, said)
	}
	if _, tries, _ = find("25G83"); tries == 0 {
		t.Error("another build was not tried")
	}
	if _, tries, _ = find(""); tries == 0 {
		t.Error("an unknown build was not tried")
	}
	// What refuses sessions is tried again, as is what a try of typing has shown.
	for name, compiler := range map[string]fakeCompiler{
		"takes nothing": {refuses: []string{"default"}}, "no typing was tried": {},
		"takes no rule against typing": {abortsAt: []string{"(ioctl-command"}, typing: TypingRefused},
	} {
		none := filepath.Join(t.TempDir(), "none.json")
		for range 2 {
			compiler.tries = 0
			c, _ := compilerOf(t, none, "23J631", compiler.try)
			if c.find(t.Context()).Untried != "" || compiler.tries == 0 {
				t.Errorf("%s: %d tries", name, compiler.tries)
			}
		}
	}
	// A file that leaves out what denies something refuses sessions.
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	open := strings.Replace(string(data), `"lines":[`, `"lines":["(deny sysctl-read (sysctl-name-prefix \"…\"))",`, 1)
	if open == string(data) {
		t.Fatalf("the file: %s", data)
	}
	if err := os.WriteFile(file, []byte(open), 0o600); err != nil {
		t.Fatal(err)
	}
	if finding, _, _ := find("25G83"); !strings.Contains(finding.Refusal, "kern.procargs") {
		t.Errorf("a changed file: %+v", finding)
	}
}

// A machine that is busy looks like a compiler that hangs, so that is not kept.
func TestCompiler_KeepsNoHang(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "seatbelt.json")
	fake := fakeCompiler{hangsAt: "FSIOC_CAS_BSDFLAGS", timeout: time.Millisecond}
	c, _ := compilerOf(t, file, "23J631", fake.try)
	if finding := c.find(t.Context()); len(finding.Faults) != 1 || finding.Refusal != "" {
		t.Errorf("%+v", finding)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("kept: %v", err)
	}
}

// What could not be tried is not kept.
func TestCompiler_KeepsNoFailure(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "seatbelt.json")
	c, log := compilerOf(t, file, "23J631", func(context.Context, Profile) (Typing, error) {
		return "", errors.New("no process can be started")
	})
	if finding := c.find(t.Context()); finding.Untried == "" {
		t.Errorf("%+v", finding)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) || strings.Count(log.String(), "level=WARN") != 1 {
		t.Errorf("%v; %s", err, log)
	}
}
