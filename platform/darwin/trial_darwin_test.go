package darwin

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The compiler of this macOS takes every form of rule, and says no to a name that
// no macOS has.
func TestTry_OfTheWholeProfile(t *testing.T) {
	t.Parallel()
	b := backend(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	typing, err := b.try(ctx, specimen())
	if err != nil {
		t.Errorf("the whole profile: %v", err)
	}
	t.Logf("typing into a terminal: %q", typing)
	if typing != TypingDenied && typing != TypingRefused {
		t.Errorf("typing is not denied: %q", typing)
	}
	unknown := specimen()
	unknown.Text += "(allow file-teleport)\n"
	_, err = b.try(ctx, unknown)
	if _, rejected := errors.AsType[*rejection](err); !rejected {
		t.Errorf("an unknown operation: %v", err)
	}
	without := specimen()
	without.Text = strings.Replace(without.Text, "(deny file-ioctl "+typingFilter+")\n", "", 1)
	control, err := b.try(ctx, without)
	t.Logf("typing without the rule: %q, %v", control, err)
}

// On this macOS nothing has to be left out, and a second sidecar need not try it.
func TestDialect_OfThisMac(t *testing.T) {
	t.Parallel()
	first := backend(t)
	first.Known = filepath.Join(realDir(t), "seatbelt.json")
	finding := first.dialect(t.Context())
	if finding.Refusal != "" || finding.Untried != "" || !finding.Dialect.takesAll() {
		t.Errorf("%+v", finding)
	}
	version, build := system()
	note := known{Build: build, Profile: fingerprintOf(specimen())}
	if kept, ok := note.read(first.Known); !ok || kept.Dialect.Typing != finding.Dialect.Typing || version < 12 {
		t.Errorf("macOS %d (%s): %t, %+v", version, build, ok, kept)
	}
}
