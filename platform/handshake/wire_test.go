package handshake_test

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

func TestOrder_RoundTripKeepsEveryByte(t *testing.T) {
	t.Parallel()
	for _, order := range []handshake.Order{
		{Argv: []string{}, Env: []string{}},
		{
			Program: "p", Argv: []string{"", "a\x00b"}, Env: []string{"A=\xff", "B=\u2028\n"}, Dir: "/\xe9",
			Terminal: &handshake.Terminal{Cols: 1, Rows: 2, NoInput: true}, Orders: handshake.Orders(`{"a":1}`),
		},
	} {
		data, err := order.Encode()
		if err != nil {
			t.Fatal(err)
		}
		from := io.MultiReader(bytes.NewReader(data), strings.NewReader("next"))
		if back, err := handshake.ReadOrder(iotest.OneByteReader(from)); err != nil || !reflect.DeepEqual(back, order) {
			t.Errorf("%+v became %+v, %v", order, back, err)
		}
		if rest, err := io.ReadAll(from); err != nil || string(rest) != "next" {
			t.Errorf("after the order there is %q, %v", rest, err)
		}
		for cut := range len(data) {
			if back, err := handshake.ReadOrder(bytes.NewReader(data[:cut])); err == nil {
				t.Errorf("%d of %d bytes are an order: %+v", cut, len(data), back)
			}
		}
	}
}

// A process must not be left unconfined by orders that say nothing.
func TestOrder_EmptyOrdersAreAnError(t *testing.T) {
	t.Parallel()
	if data, err := (handshake.Order{Orders: handshake.Orders{}}).Encode(); err == nil {
		t.Errorf("they are sent: %q", data)
	}
}

func TestFailure_NamesStepPathAndCause(t *testing.T) {
	t.Parallel()
	if got := (&handshake.Failure{
		Step: handshake.StepProgram, Path: "/p", Cause: "no",
	}).Error(); got != "execute: /p: no" {
		t.Error(got)
	}
	if got := (&handshake.Failure{Step: handshake.StepConfine, Cause: "no"}).Error(); got != "confine: no" {
		t.Error(got)
	}
}

// A lost grant is known by its path, which is bytes.
func TestMissing_RoundTripKeepsEveryByte(t *testing.T) {
	t.Parallel()
	for _, missing := range []handshake.Missing{{}, {Path: "/a\xff\n\"", Reason: "it was not there"}} {
		data, err := json.Marshal(missing)
		if err != nil {
			t.Fatal(err)
		}
		var back handshake.Missing
		if err := json.Unmarshal(data, &back); err != nil || back != missing {
			t.Errorf("%q became %q, %v", missing, back, err)
		}
	}
}

func TestFull_IgnoresWhatIsNotRequested(t *testing.T) {
	t.Parallel()
	enforced := handshake.Protection{Status: handshake.Enforced}
	for name, test := range map[string]struct {
		other handshake.Protection
		want  bool
	}{
		"enforced":            {enforced, true},
		"degraded":            {handshake.Protection{Status: handshake.Degraded}, false},
		"absent":              {handshake.Protection{Status: handshake.Absent}, false},
		"absent, not asked":   {handshake.Protection{Status: handshake.Absent, NotRequested: true}, true},
		"degraded, not asked": {handshake.Protection{Status: handshake.Degraded, NotRequested: true}, true},
		"without a status":    {handshake.Protection{}, false},
	} {
		e := handshake.Enforcement{Protections: map[string]handshake.Protection{
			handshake.Execute: enforced,
			handshake.Network: test.other,
		}}
		if e.Full() != test.want {
			t.Errorf("%s: full is %t", name, !test.want)
		}
	}
}
