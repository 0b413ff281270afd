//go:build unix

package platformtest_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

func TestMain(m *testing.M) { platformtest.Main(m, platformtest.ConfineFake) }

func TestFake_Conforms(t *testing.T) {
	t.Parallel()
	platformtest.Run(t, &platformtest.Fake{}, platformtest.Features{})
}

func TestFake_ReportsWhatItIsTold(t *testing.T) {
	t.Parallel()
	told := platform.Enforcement{
		Protections: map[string]platform.Protection{platform.Signals: {
			Status: platform.Degraded, Mechanism: "m",
			Detail: "d", Fix: "f",
		}},
		Missing:  []platform.Missing{{Path: "/gone", Reason: "no such file or directory"}},
		Warnings: []string{"beware"},
	}
	fake := &platformtest.Fake{Enforcement: told}
	p := platformtest.Policy(t)
	_, got := platformtest.Perform(t, fake, platformtest.Confined(t, fake, p))
	if got.Protections[platform.Signals] != told.Protections[platform.Signals] || got.Missing[0] != told.Missing[0] ||
		got.Warnings[0] != "beware" {
		t.Errorf("report is %+v", got)
	}
	if confined := fake.Confined(); len(confined) != 1 || confined[0] != p {
		t.Errorf("policies seen: %v", confined)
	}
}

func TestFake_Unavailable(t *testing.T) {
	t.Parallel()
	fake := &platformtest.Fake{Unavailable: platform.ErrUnavailable}
	if _, err := fake.Confine(&policy.Policy{}, platform.Hooks{}); !errors.Is(err, platform.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
	for name, protection := range fake.Probe(context.Background()) {
		if protection.Status != platform.Absent {
			t.Errorf("%s is %s", name, protection.Status)
		}
	}
	if _, _, err := platformtest.Output(fake, platformtest.Order(t)); err != nil {
		t.Errorf("an unconfined order fails: %v", err)
	}
}

func TestFake_RecordsHooksAndIsSupervised(t *testing.T) {
	t.Parallel()
	refused := errors.New("no supervisor today")
	fake := &platformtest.Fake{
		Passed: []handshake.Passed{platformtest.PassedListener},
		Supervise: func(handover platform.Handover) (platform.Supervision, error) {
			return nil, errors.Join(refused, handover.Take(platformtest.PassedListener).Close())
		},
	}
	order := platformtest.Order(t)
	var err error
	if order.Confinement, err = fake.Confine(&policy.Policy{},
		platform.Hooks{Denied: func(platform.Denial) {}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := platformtest.Output(fake, order); !errors.Is(err, refused) {
		t.Errorf("error is %v", err)
	}
	if hooks := fake.Hooks(); len(hooks) != 1 || hooks[0].Denied == nil {
		t.Errorf("%d hooks seen", len(hooks))
	}
}

func TestFake_FailsInTheStage(t *testing.T) {
	t.Parallel()
	fake := &platformtest.Fake{Failure: "as ordered"}
	_, _, err := platformtest.Output(fake, platformtest.Confined(t, fake, platformtest.Policy(t)))
	var failure *platform.Failure
	if !errors.As(err, &failure) || failure.Step != platform.StepConfine || failure.Cause != "as ordered" {
		t.Errorf("error is %v", err)
	}
}

func TestFake_ExecutesNothingUnconfirmed(t *testing.T) {
	t.Parallel()
	marker := t.TempDir() + "/marker"
	for _, unconfirmed := range []string{"no supervisor", ""} {
		fake := &platformtest.Fake{Unconfirmed: unconfirmed}
		order := platformtest.Confined(t, fake, platformtest.Policy(t),
			platformtest.Act{Verb: platformtest.Create, Path: marker})
		_, _, err := platformtest.Output(fake, order)
		var failure *platform.Failure
		if failed := errors.As(err, &failure); failed != (unconfirmed != "") || failed && failure.Cause != unconfirmed {
			t.Errorf("unconfirmed %q: error is %v", unconfirmed, err)
		}
		if _, err := os.Stat(marker); (err == nil) != (unconfirmed == "") {
			t.Errorf("unconfirmed %q: the marker: %v", unconfirmed, err)
		}
	}
}

func TestFake_HoldsUntilReleased(t *testing.T) {
	t.Parallel()
	hold := platformtest.NewHold(t)
	fake := &platformtest.Fake{Hold: hold}
	order := platformtest.Confined(t, fake, platformtest.Policy(t))
	done := make(chan error, 1)
	go func() {
		_, _, err := platformtest.Output(fake, order)
		done <- err
	}()
	hold.Arrived(t)
	select {
	case err := <-done:
		t.Fatalf("the launch ended while it was held: %v", err)
	default:
	}
	hold.Release(t)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-deadline.After(30 * time.Second):
		t.Fatal("the launch did not continue")
	}
}
