package platform_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestOrder_RoundTripKeepsEveryByte(t *testing.T) {
	t.Parallel()
	for _, order := range []platform.Order{
		{Argv: []string{}, Env: []string{}},
		{
			Program: "p", Argv: []string{"", "a\x00b"}, Env: []string{"A=\xff", "B=\u2028\n"}, Dir: "/\xe9",
			Terminal: &platform.Terminal{Cols: 1, Rows: 2, NoInput: true}, Orders: platform.Orders(`{"a":1}`),
		},
	} {
		data, err := order.Encode()
		if err != nil {
			t.Fatal(err)
		}
		from := io.MultiReader(bytes.NewReader(data), strings.NewReader("next"))
		if back, err := platform.ReadOrder(iotest.OneByteReader(from)); err != nil || !reflect.DeepEqual(back, order) {
			t.Errorf("%+v became %+v, %v", order, back, err)
		}
		if rest, err := io.ReadAll(from); err != nil || string(rest) != "next" {
			t.Errorf("after the order there is %q, %v", rest, err)
		}
		for cut := range len(data) {
			if back, err := platform.ReadOrder(bytes.NewReader(data[:cut])); err == nil {
				t.Errorf("%d of %d bytes are an order: %+v", cut, len(data), back)
			}
		}
	}
}

// A process must not be left unconfined by orders that say nothing.
func TestOrder_EmptyOrdersAreAnError(t *testing.T) {
	t.Parallel()
	if data, err := (platform.Order{Orders: platform.Orders{}}).Encode(); err == nil {
		t.Errorf("they are sent: %q", data)
	}
}

func TestFailure_NamesStepPathAndCause(t *testing.T) {
	t.Parallel()
	if got := (&platform.Failure{
		Step: platform.StepProgram, Path: "/p", Cause: "no",
	}).Error(); got != "execute: /p: no" {
		t.Error(got)
	}
	if got := (&platform.Failure{Step: platform.StepConfine, Cause: "no"}).Error(); got != "confine: no" {
		t.Error(got)
	}
}

func TestFull_IgnoresWhatIsNotRequested(t *testing.T) {
	t.Parallel()
	enforced := platform.Protection{Status: platform.Enforced}
	for name, test := range map[string]struct {
		other platform.Protection
		want  bool
	}{
		"enforced":            {enforced, true},
		"degraded":            {platform.Protection{Status: platform.Degraded}, false},
		"absent":              {platform.Protection{Status: platform.Absent}, false},
		"absent, not asked":   {platform.Protection{Status: platform.Absent, NotRequested: true}, true},
		"degraded, not asked": {platform.Protection{Status: platform.Degraded, NotRequested: true}, true},
		"without a status":    {platform.Protection{}, false},
	} {
		e := platform.Enforcement{Protections: map[string]platform.Protection{
			platform.Execute: enforced,
			platform.Network: test.other,
		}}
		if e.Full() != test.want {
			t.Errorf("%s: full is %t", name, !test.want)
		}
	}
}

func TestUnsupported_ConfinesNothing(t *testing.T) {
	t.Parallel()
	u := platform.Unsupported{System: "plan9", Executable: "/bin/sidecar"}
	if c, err := u.Confine(&policy.Policy{Restricted: true}, platform.Hooks{}); !errors.Is(err,
		platform.ErrUnavailable) || c.Orders != nil {
		t.Errorf("confine: %s, %v", c.Orders, err)
	}
	if _, err := platform.RefuseToConfine(nil); !errors.Is(err, platform.ErrUnavailable) {
		t.Errorf("the stage confines itself: %v", err)
	}
	protections := u.Probe(context.Background())
	for _, name := range platform.Protections {
		if p, ok := protections[name]; name != platform.ProcessTracking &&
			(!ok || p.Status != platform.Absent || p.Detail == "") {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if path, argv := u.Stage(); path != u.Executable || len(argv) != 2 || argv[1] != "stage" || u.Name() != "plan9" {
		t.Errorf("stage is %s %v of %s", path, argv, u.Name())
	}
}
