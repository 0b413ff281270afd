package settings

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
)

// What is written into a project's file is trusted with the rest of it. So nothing
// is written if the rest is not trusted, whatever it asks for under the settings
// and the command line of now.
func TestAllow_TrustsNothingThatNobodyHasSeen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content string
		refused string
	}{
		"switches the sandbox off": {disabled, "see `sandbox-sidecar trust`"},
		"asks for nothing now":     {enabled, "see `sandbox-sidecar trust`"},
		"only of an editor":        {`{"tab_size": 2}`, "see `sandbox-sidecar trust`"},
		"a mistake":                {`{"terminal": {"sandbox": {"enabled": 1}}}`, "something in it is wrong"},
		"no JSON":                  {`{`, "it cannot be used"},
		"empty":                    {"", ""},
		"comments":                 {"// mine\n", ""},
	} {
		for _, command := range []string{"", enabled} {
			t.Run(fmt.Sprintf("%s, command line %q", name, command), func(t *testing.T) {
				t.Parallel()
				d := newFixture(t)
				d.write(d.own, outsideTmp)
				d.write(d.projectFile(), test.content)
				store := d.open(func(o *Options) {
					if command != "" {
						o.Command = []byte(command)
					}
				})
				_, err := store.Propose(ScopeProject, d.project, opt)
				for door, err := range map[string]error{
					"propose": err, "allow": store.Allow(ScopeProject, d.project, opt),
				} {
					if test.refused == "" && err != nil {
						t.Errorf("control: %s: %v", door, err)
					}
					if test.refused != "" && (!errors.Is(err, ErrNotAllowable) ||
						!strings.Contains(err.Error(), test.refused) ||
						!strings.Contains(err.Error(), display.Quote(d.projectFile()))) {
						t.Errorf("%s: %v", door, err)
					}
				}
				refused := test.refused != ""
				if same := read(t, d.projectFile()) == test.content; same != refused {
					t.Errorf("as it was: %t", same)
				}
				if trusted := d.open(nil).Snapshot(d.project).Project().Trusted; trusted == refused {
					t.Errorf("trusted: %t", trusted)
				}
			})
		}
	}
}

// A file that changes between the check and the write is not written.
func TestAllow_TrustsNothingThatAppearsMeanwhile(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"absent": "", "trusted": enabled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			d.write(d.own, outsideTmp)
			if before != "" {
				d.write(d.projectFile(), before)
			}
			store := d.open(nil)
			if before != "" {
				_, err := store.Trust(d.project, "")
				must(t, err)
			}
			shown, err := store.Propose(ScopeProject, d.project, opt)
			must(t, err)
			direct, err := store.addition(ScopeProject, d.project, opt)
			must(t, err)
			d.save(d.projectFile(), disabled)
			if err := store.Confirm(shown); !errors.Is(err, ErrChanged) {
				t.Errorf("confirm: %v", err)
			}
			if err := store.write(direct); !errors.Is(err, ErrChanged) {
				t.Errorf("allow: %v", err)
			}
			if d.store.Snapshot(d.project).Project().Trusted || read(t, d.projectFile()) != disabled {
				t.Error("what nobody has seen is trusted")
			}
			if before == "" {
				d.must(os.Remove(d.projectFile()))
			} else {
				d.save(d.projectFile(), before)
			}
			if err := store.Confirm(shown); err != nil || !d.store.Snapshot(d.project).Project().Trusted {
				t.Errorf("control: %v", err)
			}
		})
	}
}

// What the user does not trust any more, no undo trusts again.
func TestUndo_GivesNoTrustBackThatWasWithdrawn(t *testing.T) {
	t.Parallel()
	for _, withdrawn := range []bool{true, false} {
		d := newFixture(t)
		d.write(d.own, outsideTmp)
		d.write(d.projectFile(), disabled)
		store := d.open(nil)
		_, err := store.Trust(d.project, "")
		must(t, err)
		must(t, store.Allow(ScopeProject, d.project,
			explain.Suggestion{Key: "additional_read_only_paths", Value: "/opt"}))
		if withdrawn {
			_, err := store.Untrust(d.project)
			must(t, err)
		}
		if _, _, err := store.Undo(); err != nil || read(t, d.projectFile()) != disabled {
			t.Fatalf("undo: %v: %s", err, read(t, d.projectFile()))
		}
		if d.free() == withdrawn {
			t.Errorf("withdrawn %t: free %t", withdrawn, d.free())
		}
	}
}
