//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/kernels/result"
)

const (
	sidecar = "/programs/cmd/sandbox-sidecar"
	// attacks is the suite that counts them.
	attacks = "tests/attack"
	// suiteTime is far above the time of a suite; the host bounds the whole
	// machine.
	suiteTime = "20m"
)

// short are the tests of a suite in a short run, in which the attacks are
// shared.
var short = map[string]struct {
	tests string // regular expression; empty: all
	skip  string // regular expression
}{
	attacks: {tests: "^TestAttacks$"},
	// Pure tests have the same result on every kernel, and take minutes here.
	"platform/linux": {skip: "^TestTranslate_"},
	// Only what installs a filter, or asks the kernel, differs between kernels.
	"platform/linux/seccomp": {skip: "^Test(Filter_(Golden|DoesWhat|TheCalls|Asks|RejectsUnknown|Offline)|" +
		"Builder_|Observation_)"},
	// Fingerprints are how macOS is tracked; the search for them is long where
	// programs start slowly. To read 100 MB is the same on every kernel.
	"lifecycle": {skip: "^Test(MarkedGroup|SessionFingerprint)|^TestSweep_HandlesFilesThatAreNoJournals$/^100_MB_"},
}

// runs reports whether a suite runs in the context.
func (c context) runs(s suite) bool {
	return c.place == "" && (len(s.contexts) == 0 || slices.Contains(s.contexts, c.name))
}

// test runs a suite in the context.
func (c context) test(s suite) *result.Run {
	start, suite := time.Now(), s.pkg
	dir := filepath.Join("/suite", suite)
	args := []string{"-test.v", "-test.timeout", suiteTime, "-test.parallel", "4"}
	tally := filepath.Join("/tmp", "tally-"+c.name)
	if suite == attacks {
		// Each user attacks once, as itself: the other users have contexts of
		// their own, and so have machines without namespaces.
		args = append(args, "-tally", tally, "-under", "sandboxed", "-as", "root", "-share", strconv.Itoa(c.share),
			"-shares", strconv.Itoa(c.shares))
	}
	if c.shares > 1 {
		tests := short[suite].tests
		if len(s.tests) > 0 {
			tests = "^(" + strings.Join(s.tests, "|") + ")$"
		}
		args = append(args, "-test.run", tests, "-test.skip", short[suite].skip)
	}
	command := c.command(dir, filepath.Join(dir, "suite.test"), args...)
	var printed bytes.Buffer
	// the console, which shows it if the machine never comes to its end
	command.Stdout = io.MultiWriter(&printed, os.Stdout)
	command.Stderr = command.Stdout
	fmt.Fprintf(os.Stdout, "\n== %s %s\n", c.name, suite)
	_ = command.Run() // the status is enough
	output := printed.Bytes()
	run := &result.Run{Context: c.name, Suite: suite, Exit: command.ProcessState.ExitCode()}
	for line := range bytes.Lines(output) {
		text := strings.TrimSpace(string(line))
		verdict, rest, _ := strings.Cut(strings.TrimPrefix(text, "--- "), ": ")
		name, _, _ := strings.Cut(rest, " (")
		switch {
		case !strings.HasPrefix(text, "--- "):
		case verdict == "PASS":
			run.Passed = append(run.Passed, name)
		case verdict == "FAIL":
			run.Failed = append(run.Failed, name)
		case verdict == "SKIP":
			run.Skipped = append(run.Skipped, name)
		}
	}
	if suite == attacks {
		run.Tally = map[string]int{}
		counts, err := os.ReadFile(tally)
		if err == nil {
			err = json.Unmarshal(counts, &run.Tally)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // without a sandbox there is none
			run.Failed = append(run.Failed, fmt.Sprintf("read the tally: %v", err))
		}
	}
	run.Seconds = time.Since(start).Seconds()
	return run
}

// doctors is how often doctor is asked until it answers. It waits for its
// attacks as long as they take on a machine, and an emulated one may be slower.
const doctors = 3

// doctor asks the sidecar what it can enforce here, and lets it attack itself.
func (c context) doctor() (doctor *result.Doctor, err error) {
	for range doctors {
		if doctor, err = c.askDoctor(); err == nil {
			return doctor, nil
		}
	}
	return nil, err
}

func (c context) askDoctor() (*result.Doctor, error) {
	start := time.Now()
	command := c.command(c.home(), sidecar, "doctor", "--json")
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output() // the exit status only summarises
	doctor := &result.Doctor{Context: c.name}
	if jsonErr := json.Unmarshal(output, doctor); jsonErr != nil {
		return nil, fmt.Errorf("%w: %s", errors.Join(err, jsonErr), complaints.String())
	}
	doctor.Seconds = time.Since(start).Seconds()
	return doctor, nil
}
