//go:build unix

package platform_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
)

// passing is a backend whose stage passes the given descriptors. Each is a file
// that contains its kind's name.
func passing(t *testing.T, kinds ...handshake.Passed) (*platformtest.Fake, platformtest.Job) {
	t.Helper()
	fake := &platformtest.Fake{Passed: kinds}
	return fake, platformtest.Confined(t, fake, platformtest.Policy(t), platformtest.Act{Verb: platformtest.Files})
}

// supervision counts how often it is closed.
type supervision struct{ closed atomic.Int32 }

func (s *supervision) Close() error {
	s.closed.Add(1)
	return nil
}

// start launches a job with the null device as its streams.
func start(t *testing.T, fake *platformtest.Fake, job platformtest.Job) (platform.Launched, error) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	launched, err := platform.Launch(withTimeout(t), fake, platform.Target{
		Order: job.Order, Confinement: job.Confinement, Streams: [3]*os.File{null, null, null},
		Attr: &syscall.SysProcAttr{Setsid: true}, Start: lifecycle.Start,
	})
	if err == nil {
		t.Cleanup(func() {
			if status, err := launched.Process.Wait(false); err != nil || status != 0 {
				t.Errorf("wait status %#x, %v", int(status), err)
			}
		})
	}
	return launched, err
}

func TestLaunch_TakesPassedDescriptors(t *testing.T) {
	t.Parallel()
	fake, job := passing(t, platformtest.PassedListener, handshake.PassedTerminal, platformtest.PassedDiag)
	watching := &supervision{}
	got := ""
	job.Confinement.Supervise = func(handover platform.Handover) (platform.Supervision, error) {
		got = readAll(t, handover.Take(platformtest.PassedListener))
		if diag := handover.Take(platformtest.PassedDiag); diag != nil {
			got += " and " + readAll(t, diag)
		}
		return watching, nil
	}
	job.Confinement.Descriptors = platformtest.Descriptors
	job.Terminal = &platform.Terminal{Cols: 1, Rows: 1}
	launched, err := start(t, fake, job)
	if err != nil {
		t.Fatal(err)
	}
	if terminal := readAll(t, launched.Terminal); terminal != "terminal" || got != "listener and diag" {
		t.Errorf("the terminal is %q, the listener %q", terminal, got)
	}
	if launched.Supervision != watching || watching.closed.Load() != 0 {
		t.Errorf("supervision is %v, closed %d times", launched.Supervision, watching.closed.Load())
	}
}

func TestLaunch_FailsOnWrongDescriptors(t *testing.T) {
	t.Parallel()
	refused := errors.New("no room")
	for name, test := range map[string]struct {
		passed    []handshake.Passed
		terminal  bool
		supervise error // Supervise's error; errNoSupervisor: there is no Supervise
		says      string
	}{
		"an unrequested terminal": {
			[]handshake.Passed{handshake.PassedTerminal}, false, errNoSupervisor, "not asked for",
		},
		"an unrequested listener": {
			[]handshake.Passed{platformtest.PassedListener}, true, errNoSupervisor, "not asked for",
		},
		"two terminals": {
			[]handshake.Passed{handshake.PassedTerminal, handshake.PassedTerminal},
			true,
			errNoSupervisor, "not asked for",
		},
		"something unknown": {[]handshake.Passed{"what"}, true, nil, "not asked for"},
		"two listeners": {
			[]handshake.Passed{platformtest.PassedListener, platformtest.PassedListener},
			false,
			nil, "not asked for",
		},
		"an unrequested list": {[]handshake.Passed{platformtest.PassedDiag}, false, errNoSupervisor, "not asked for"},
		"a list and no listener": {
			[]handshake.Passed{platformtest.PassedDiag},
			false, nil,
			"passed no listener",
		},
		"nothing for a terminal": {nil, true, errNoSupervisor, "passed no terminal"},
		"nothing to supervise":   {nil, false, nil, "passed no listener"},
		"no supervisor": {
			[]handshake.Passed{handshake.PassedTerminal, platformtest.PassedListener},
			true,
			refused, "no room",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, job := passing(t, test.passed...)
			marker := t.TempDir() + "/marker"
			job.Order = platformtest.Order(t, platformtest.Act{Verb: platformtest.Create, Path: marker}).Order
			watching := &supervision{}
			if test.terminal {
				job.Terminal = &platform.Terminal{Cols: 1, Rows: 1}
			}
			if !errors.Is(test.supervise, errNoSupervisor) {
				job.Confinement.Descriptors = platformtest.Descriptors
				job.Confinement.Supervise = func(handover platform.Handover) (platform.Supervision, error) {
					handover.Close()
					if test.supervise != nil {
						return nil, test.supervise
					}
					return watching, nil
				}
			}
			if _, err := start(t, fake, job); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error is %v, want one that says %q", err, test.says)
			}
			if _, err := os.Stat(marker); len(test.passed) > 0 && err == nil {
				t.Error("the program ran without its supervisor")
			}
		})
	}
}

// A backend lists a kind as often as it may come. One that is required and does
// not come ends the launch.
func TestLaunch_TakesAsManyOfAKindAsAreListed(t *testing.T) {
	t.Parallel()
	const kind handshake.Passed = "end of a pair"
	for name, test := range map[string]struct {
		passed      []handshake.Passed
		descriptors []platform.Descriptor
		says        string // empty: it is launched
	}{
		"both":       {[]handshake.Passed{kind, kind}, []platform.Descriptor{{kind, true}, {kind, true}}, ""},
		"one of two": {[]handshake.Passed{kind}, []platform.Descriptor{{kind, true}, {kind, true}}, "passed no end"},
		"the second is optional": {
			[]handshake.Passed{kind}, []platform.Descriptor{{kind, true}, {kind, false}}, "",
		},
		"a third": {
			[]handshake.Passed{kind, kind, kind}, []platform.Descriptor{{kind, true}, {kind, true}}, "not asked for",
		},
		"nothing, and nothing is listed": {nil, nil, "did not wait"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, job := passing(t, test.passed...)
			taken := 0
			job.Confinement.Descriptors = test.descriptors
			job.Confinement.Supervise = func(handover platform.Handover) (platform.Supervision, error) {
				for file := handover.Take(kind); file != nil; file = handover.Take(kind) {
					taken++
					if got := readAll(t, file); got != string(kind) {
						t.Errorf("it is a %q", got)
					}
				}
				return &supervision{}, nil
			}
			_, err := start(t, fake, job)
			switch {
			case test.says == "" && (err != nil || taken != len(test.passed)):
				t.Errorf("%d of %d were taken: %v", taken, len(test.passed), err)
			case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
				t.Errorf("error is %v, want one that says %q", err, test.says)
			}
		})
	}
}

var errNoSupervisor = errors.New("there is no supervisor")

func readAll(t *testing.T, file *os.File) string {
	t.Helper()
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}
