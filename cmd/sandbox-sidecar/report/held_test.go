//go:build unix

package report

import (
	"fmt"
	"strings"
	"testing"
)

func TestHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decide func(*Held)
		want   string
	}{
		"a window":                        {(*Held).Drop, ""},
		"no window":                       {(*Held).Pass, "before after "},
		"a session that does not start":   {func(*Held) {}, "before after "},
		"a window that goes away at last": {func(h *Held) { h.Drop(); h.Pass() }, "after "},
	} {
		var printed strings.Builder
		h := Hold(&printed)
		fmt.Fprint(h, "before ")
		if printed.Len() > 0 {
			t.Errorf("%s: not held", name)
		}
		c.decide(h)
		fmt.Fprint(h, "after ")
		h.Flush()
		if got := printed.String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	var none *Held
	none.Drop()
	none.Pass()
}

func TestHeld_IsBounded(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	h := Hold(&printed)
	for range 1000 {
		fmt.Fprint(h, strings.Repeat("x", 1000))
	}
	h.Pass()
	if got := printed.Len(); got == 0 || got > maxHeld {
		t.Errorf("%d bytes were held", got)
	}
}
