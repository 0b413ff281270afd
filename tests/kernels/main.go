package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	cache, only, suites, document, expected string
	jobs, shares                            int
	timeout                                 time.Duration
	update                                  bool
}

func main() {
	var o options
	flag.StringVar(&o.cache, "cache", "bin/kernels", "directory for what is downloaded, and for logs")
	flag.StringVar(&o.only, "run", "", "boot only the kernels whose name matches this regular expression")
	flag.StringVar(&o.suites, "suites", "", "run only the suites whose package matches this regular expression, "+
		"beside doctor")
	flag.StringVar(&o.document, "write", "", "write the table of protections to this file, where every kernel ran")
	flag.StringVar(&o.expected, "expected", "tests/kernels/expected.txt", "file with the statuses that are expected")
	flag.IntVar(&o.jobs, "jobs", max(2, runtime.NumCPU()), "machines at a time; each has one processor")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "the longest that a machine may take")
	flag.IntVar(&o.shares, "shares", 20, "deal the attacks out in so many shares, one to a context, because emulation "+
		"is slow; 12: each is carried out once; "+
		"1: all of them in each context, and all tests of each suite")
	flag.BoolVar(&o.update, "update", false, "take what is found for what is expected")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

// contexts are how many carry out attacks on each kernel whose suites include
// them. Package attack carries out all of them on the running kernel, and
// doctor its own in every context here. Each context here carries out a share,
// to find what these two have missed.
const contexts = 4

// enough is how many kernels must have run for a valid result.
const enough = 3

func run(ctx context.Context, o options) error {
	start := time.Now()
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("read -run: %w", err)
	}
	suitePattern, err := regexp.Compile(o.suites)
	if err != nil {
		return fmt.Errorf("read -suites: %w", err)
	}
	var chosen []kernel
	for _, k := range kernels {
		switch {
		case !pattern.MatchString(k.name):
			continue
		case k.architecture().name == runtime.GOARCH:
			k.suites = slices.DeleteFunc(slices.Clone(k.suites), func(s suite) bool {
				return !suitePattern.MatchString(s.pkg)
			})
		default:
			k.suites = nil // their programs are this machine's
		}
		chosen = append(chosen, k)
	}
	if err := installed(chosen); err != nil {
		return err
	}
	known, err := readExpected(o.expected)
	if err != nil {
		return err
	}
	cache, err := filepath.Abs(o.cache)
	if err != nil {
		return err
	}
	logs := filepath.Join(cache, "logs")
	if err := errors.Join(os.RemoveAll(logs), os.MkdirAll(logs, 0o755)); err != nil {
		return err
	}
	fetch, err := newFetcher(ctx, cache)
	if err != nil {
		return err
	}
	like := machine{cache: cache, logs: logs, shares: o.shares, timeout: o.timeout}
	for _, arch := range []architecture{amd64, arm64} {
		if err := makeInitrd(ctx, like.common(arch), arch, chosen); err != nil {
			return err
		}
	}
	outcomes, err := bootAll(ctx, fetch, like, chosen, known, o.jobs)
	if err != nil {
		return err
	}
	if o.update {
		for _, outcome := range outcomes {
			maps.Copy(known, outcome.found())
		}
		if err := toFile(o.expected, known.write); err != nil {
			return err
		}
	}
	if o.document != "" && o.only == "" {
		if err := writeDocument(os.Stdout, o.document, outcomes); err != nil {
			return err
		}
	}
	slowest(os.Stdout, outcomes)
	skipped(os.Stdout, outcomes)
	summary(os.Stdout, outcomes)
	total(os.Stdout, time.Since(start), fetch.bytes)
	return judge(os.Stdout, outcomes, known, logs, o.only == "")
}

// installed returns an error that names every program that these kernels need
// and this machine lacks. Otherwise it would show after ten minutes, at the last
// kernel.
func installed(chosen []kernel) error {
	programs := []string{"cpio", "dpkg-deb", "mke2fs", "xz"}
	for _, k := range chosen {
		programs = append(programs, k.architecture().emulator)
	}
	slices.Sort(programs)
	missing := slices.DeleteFunc(slices.Compact(programs), func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	})
	if len(missing) > 0 {
		return fmt.Errorf("not installed: %s; run as root: tests/prerequisites kernels", strings.Join(missing, ", "))
	}
	return nil
}

// makeInitrd makes the common file system of the chosen kernels of an
// architecture; nothing if there are none.
func makeInitrd(ctx context.Context, path string, arch architecture, chosen []kernel) error {
	chosen = slices.DeleteFunc(slices.Clone(chosen), func(k kernel) bool { return k.architecture().name != arch.name })
	if len(chosen) == 0 {
		return nil
	}
	root, err := os.MkdirTemp("", "sidecar-guest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if err := os.Chmod(root, 0o755); err != nil { // it becomes the guest's root directory
		return err
	}
	var suites []suite
	for _, k := range chosen {
		for _, s := range k.suites {
			if !slices.ContainsFunc(suites, func(other suite) bool { return other.pkg == s.pkg }) {
				suites = append(suites, s)
			}
		}
	}
	if err := (tree{root, arch}).build(ctx, suites); err != nil {
		return err
	}
	return toFile(path, func(w io.Writer) error { return pack(ctx, root, w) })
}

// bootAll fetches one kernel after another, because those of a suite share an
// index, and boots several at a time.
func bootAll(ctx context.Context, fetch *fetcher, like machine, chosen []kernel, known expected, jobs int) ([]outcome,
	error,
) {
	outcomes := make([]outcome, len(chosen))
	slots := make(chan struct{}, jobs)
	var all sync.WaitGroup
	defer all.Wait()
	share := 0
	for i, k := range chosen {
		got, err := fetch.fetch(ctx, k)
		if errors.Is(err, errUnavailable) {
			outcomes[i] = outcome{kernel: k, missing: err.Error()}
			outcomes[i].announce(os.Stderr)
			continue
		} else if err != nil {
			return nil, err
		}
		m := like
		m.kernel, m.fetched, m.missing, m.share = k, got, known.missing(k.name), share*contexts
		if slices.ContainsFunc(k.suites, func(s suite) bool { return s.pkg == attacks.pkg }) {
			share++ // the others carry out no attack
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			outcomes[i] = m.boot(ctx)
			outcomes[i].announce(os.Stderr)
		})
	}
	all.Wait()
	return outcomes, ctx.Err()
}

// writeDocument leaves the document as it is if a machine has no result or only
// half of one: that of an earlier run is true, half a table is not.
func writeDocument(w io.Writer, path string, outcomes []outcome) error {
	for _, o := range outcomes {
		if o.err != nil || o.missing == "" && !o.guest.ended {
			_, err := fmt.Fprintf(w, "%s is not written: %s did not run to its end\n", path, o.kernel.name)
			return err
		}
	}
	return toFile(path, func(w io.Writer) error { return document(w, outcomes) })
}

func toFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// judge prints every failure, and returns an error if there are any, or if too
// few kernels ran.
func judge(w io.Writer, outcomes []outcome, known expected, logs string, whole bool) error {
	ran, failed := 0, 0
	for _, o := range outcomes {
		if o.notRun() == "" {
			ran++
		}
		for _, failure := range slices.Concat(o.failures(), known.differ(o)) {
			failed++
			fmt.Fprintln(w, "FAIL", failure)
		}
	}
	switch {
	case failed > 0:
		return fmt.Errorf("%d failures; what the machines printed is in %s", failed, logs)
	case whole && ran < enough:
		return fmt.Errorf("only %d kernels ran, and %d must", ran, enough)
	}
	return nil
}
