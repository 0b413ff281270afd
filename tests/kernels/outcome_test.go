package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/kernels/result"
)

func protection(status string, verdicts ...string) result.Protection {
	p := result.Protection{Name: "signals", Status: status}
	for _, verdict := range verdicts {
		p.Attacks = append(p.Attacks, result.Attack{Attack: "try", Status: status, Verdict: verdict})
	}
	return p
}

func denials(status string, verdicts ...string) result.Protection {
	p := protection(status, verdicts...)
	p.Name = "denials"
	return p
}

func TestUnproved_AStatusNeedsAnAttack(t *testing.T) {
	t.Parallel()
	stronger := protection("degraded", "held")
	stronger.Attacks[0].Status = enforced
	for _, test := range []struct {
		name   string
		p      result.Protection
		proved bool
	}{
		{"enforced, and the attack fails", protection(enforced, "held"), true},
		{"enforced, and an attack works", protection(enforced, "held", "broken"), false},
		{"enforced, and nothing could be tried", protection(enforced, "untried"), false},
		{"enforced without attacks", protection(enforced), false},
		{"degraded, and something is open", protection("degraded", "held", "open"), true},
		{"degraded, and nothing is open", protection("degraded", "held"), false},
		{"degraded, and the session had more", stronger, true},
		{"absent, and the attack works", protection("absent", "open"), true},
		{"absent without attacks", protection("absent"), false},
		{"denials are degraded, and refusals are reported", denials("degraded", "held"), true},
		{"denials are degraded, and nothing is reported", denials("degraded", "broken"), false},
		{"denials are degraded, and nothing was tried", denials("degraded"), false},
		{"denials are absent, and nothing is reported", denials("absent", "open"), true},
		{"denials are absent without attacks", denials("absent"), false},
	} {
		if got := unproved(test.p); (got == "") != test.proved {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// lines is a guest's output, with the kernel's messages in between.
const lines = `{"begin":{"release":"6.1.0","abi":2}}
[    2.1] noise of the kernel's own
{"doctor":{"context":"root","protections":[{"name":"signals","status":"absent","attacks":[{"verdict":"open"}]}]}}
{"run":{"context":"root","suite":"tests/attack","exit":1,"passed":["TestA","TestB","TestC"],"failed":["TestX"],` +
	`"tally":{"stopped":2,"open, said":1,"HOLE":1}}}
{"run":{"context":"root","suite":"spawn","exit":2,"passed":["TestA"]}}
{"run":{"context":"root","suite":"platform","exit":0}}
{"note":"mount /x: no such device"}
`

func TestGuest_IsReadAndJudged(t *testing.T) {
	t.Parallel()
	o := outcome{kernel: kernel{name: "6.1"}, boots: 1, emulator: "killed"}
	if err := o.guest.read(strings.NewReader(lines)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"6.1: the machine did not come to its end in 1 boots: killed", "6.1: mount /x: no such device",
		"6.1: root: tests/attack: TestX",
		"6.1: root: spawn: exit status 2", "6.1: root: platform: no test has run",
	}
	if got := o.failures(); !slices.Equal(got, want) {
		t.Errorf("failures %q, want %q", got, want)
	}
	if got := o.row("root"); got.stopped != 2 || got.expected != 3 || got.open != 2 || got.absent != 1 ||
		got.failed != 1 {
		t.Errorf("row %+v", got)
	}
	if err := o.guest.read(strings.NewReader(lines + `{"end":true}` + "\n")); err != nil || !o.guest.ended {
		t.Errorf("the end is not seen: %v", err)
	}
}

// A machine whose emulator is not installed fails the run by its name. It hides
// no other machine's result, and the document of an earlier run stays.
func TestMachine_WithoutEmulatorIsAFailure(t *testing.T) {
	t.Parallel()
	arch := architecture{name: "none", emulator: "qemu-system-none"}
	m := machine{
		kernel: kernel{name: "6.12-none", machine: &arch}, cache: t.TempDir(), logs: t.TempDir(), timeout: time.Minute,
	}
	m.modules = t.TempDir()
	if err := os.WriteFile(m.common(arch), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := outcome{kernel: kernel{name: "7"}, guest: guest{ended: true}}
	outcomes := []outcome{good, m.boot(t.Context())}
	var printed strings.Builder
	if err := judge(&printed, outcomes, expected{}, m.logs, false); err == nil {
		t.Error("a machine that did not run is no failure")
	}
	summary(&printed, outcomes)
	outcomes[1].announce(&printed)
	document := filepath.Join(t.TempDir(), "kernels.md")
	if err := writeDocument(&printed, document, outcomes); err != nil {
		t.Error(err)
	}
	if exists(document) {
		t.Error("a document is written")
	}
	const why = `exec: "qemu-system-none": executable file not found in $PATH`
	for _, want := range []string{
		"FAIL 6.12-none: has not run: " + why, "6.12-none            not run: " + why,
		"6.12-none: not run: " + why, "is not written: 6.12-none did not run to its end",
	} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("%q is not in %q", want, printed.String())
		}
	}
	if err := writeDocument(&printed, document, outcomes[:1]); err != nil || !exists(document) {
		t.Errorf("no document of machines that ran: %v", err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A test of the guest reads the same form.
func TestSuite_OrderNamesContextsAndTests(t *testing.T) {
	t.Parallel()
	s := suite{pkg: "tests/lifetime", contexts: []string{asRoot, asPlain}, proves: []string{"TestA", "TestB"}}
	if got, want := s.order(true), "tests/lifetime@root+user-plain@TestA+TestB"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := s.order(false); got != s.pkg {
		t.Errorf("%q where all of it runs", got)
	}
}

// A feature that a machine is known to lack is skipped and no failure. But the
// tests that a suite must prove have to have run.
func TestOutcome_WhatASuiteProvesMustHavePassedAsAWhole(t *testing.T) {
	t.Parallel()
	s := suite{pkg: "tests/lifetime", contexts: []string{asPlain}, proves: []string{"TestX"}}
	const unproved = "7: tests/lifetime: TestX has not passed as a whole, and nothing else shows what it is about"
	for _, test := range []struct {
		name string
		run  result.Run
		want []string
	}{
		{"passed", result.Run{Passed: []string{"TestX", "TestX/close"}, Skipped: []string{"TestXY/close"}}, nil},
		{"skipped", result.Run{Passed: []string{"TestA"}, Skipped: []string{"TestX"}}, []string{unproved}},
		{
			"a part is skipped",
			result.Run{Passed: []string{"TestX", "TestX/close"}, Skipped: []string{"TestX/kill"}},
			[]string{unproved},
		},
		{"gone", result.Run{Passed: []string{"TestA"}}, []string{unproved}},
		{
			"in another context",
			result.Run{Passed: []string{"TestX"}, Context: asRoot},
			[]string{"7: user-plain: tests/lifetime has not run"},
		},
	} {
		test.run.Suite = s.pkg
		if test.run.Context == "" {
			test.run.Context = asPlain
		}
		o := outcome{
			kernel: kernel{name: "7", suites: []suite{s}}, guest: guest{ended: true, runs: []result.Run{test.run}},
		}
		if got := o.failures(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestExpected_HoldsARunToWhatIsKnown(t *testing.T) {
	t.Parallel()
	known := expected{
		{
			"6.1", "root",
		}: {"signals=absent"}, {"6.1", "user"}: {"signals=absent", "execute=enforced", "network=degraded"},
		{"6.1", "container"}: {"signals=absent"}, {"7", "root"}: {"signals=absent"},
	}
	o := outcome{kernel: kernel{name: "6.1"}, guest: guest{ended: true}}
	o.guest.doctor = map[string]result.Doctor{
		"root": {Protections: []result.Protection{{Name: "signals", Status: "absent"}}},
		"user": {Protections: []result.Protection{{
			Name: "execute", Status: "absent",
		}, {Name: "syscalls", Status: enforced}}},
	}
	want := []string{
		"6.1: container: nothing is reported, expected statuses",
		"6.1: user: execute=absent, expected execute=enforced",
		"6.1: user: syscalls=enforced is not among what is expected",
	}
	if got := known.differ(o); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := known.missing("6.1"); got != "container:signals;root:signals;user:signals,network" {
		t.Errorf("the guest is told that it misses %q", got)
	}
}

func TestNewestFirst_ComparesNumbers(t *testing.T) {
	t.Parallel()
	names := []string{
		"linux-image-6.1.0-9-cloud-amd64", "linux-image-6.1.0-56-cloud-amd64",
		"linux-image-6.10.2-cloud-amd64",
	}
	newestFirst(names)
	if want := []string{
		"linux-image-6.10.2-cloud-amd64", "linux-image-6.1.0-56-cloud-amd64",
		"linux-image-6.1.0-9-cloud-amd64",
	}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// Every kernel of the table has expectations, and no other: a kernel without
// expectations would pass unchecked.
func TestExpected_IsAboutTheKernelsThatThereAre(t *testing.T) {
	t.Parallel()
	known, err := readExpected("expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	for at := range known {
		if !slices.ContainsFunc(kernels, func(k kernel) bool { return k.name == at.kernel }) {
			t.Errorf("expected of %s, which is not booted", at.kernel)
		}
	}
	for _, k := range kernels {
		if _, ok := known[place{k.name, "root"}]; !ok {
			t.Errorf("nothing is expected of %s", k.name)
		}
	}
}

// The features go through a kernel's command line and a list with blanks.
func TestKernels_LackFeaturesOfOneWord(t *testing.T) {
	t.Parallel()
	for _, k := range kernels {
		for _, feature := range k.without {
			if strings.ContainsAny(feature, " ,") {
				t.Errorf("%s: %q is not one word", k.name, feature)
			}
		}
	}
}

func TestInstalled_NamesEveryMissingProgram(t *testing.T) {
	t.Parallel()
	none, other := &architecture{emulator: "qemu-system-none"}, &architecture{emulator: "qemu-system-other"}
	err := installed([]kernel{{machine: none}, {machine: other}, {machine: none}})
	if err == nil || !strings.Contains(err.Error(), "qemu-system-none, qemu-system-other") {
		t.Errorf("error: %v", err)
	}
	if err := installed(nil); err != nil && strings.Contains(err.Error(), "qemu") {
		t.Errorf("without kernels: %v", err)
	}
}
