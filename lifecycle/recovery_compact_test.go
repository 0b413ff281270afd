//go:build unix

package lifecycle

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// rewrite is a sidecar that only compacts its journal, while directories are
// made and removed. Its argument is the state directory. A second argument
// gives it a watchdog.
func rewrite(args []string) {
	options := Options{StateDir: args[0]}
	if len(args) > 1 {
		options.Watchdog = func() (string, []string) {
			command := proctest.Helper("watchdog")
			return command.Path, command.Args
		}
	}
	e := &recovery{options: options}
	if err := errors.Join(e.open(), e.guard()); err != nil {
		panic(err)
	}
	share := &groupState{recovery: e}
	var living []string
	for i := 0; ; i++ {
		if i == 5 {
			proctest.Ready()
		}
		private, err := share.MakeDir()
		if err != nil {
			panic(err)
		}
		if living = append(living, private); i >= 5 {
			if err := errors.Join(os.Remove(living[0]), e.write(journal.Ended(kindDirectory, living[0]))); err != nil {
				panic(err)
			}
			living = living[1:]
		}
		_ = e.journal.Compact()
	}
}

// A sidecar is killed while it compacts its journal. What lived is found, by
// the next sidecar and by the watchdog.
func TestJournal_ADeathWhileItIsCompactedLosesNothing(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"the next sidecar", "the watchdog"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			rounds := 60
			if testing.Short() {
				rounds = 10
			}
			for range rounds {
				dir := proctest.StateDir(t)
				command := proctest.Helper("rewrite", dir)
				if by == "the watchdog" {
					command = proctest.Helper("rewrite", dir, "watched")
				}
				proctest.StartReady(command)
				// the round tests a random moment of death
				time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
				_ = command.Process.Kill()
				_ = command.Wait()
				if by == "the next sidecar" {
					if err := Sweep(proctest.Soon(t), dir); err != nil {
						t.Error(err)
					}
				}
				mustBeEmpty(t, dir, by == "the watchdog")
			}
			t.Logf("%d rounds", rounds)
		})
	}
}

// mustBeEmpty waits until a state directory holds nothing but what a sweep
// removes at once. A watchdog does not know files that are still under a
// temporary name.
func mustBeEmpty(t *testing.T, dir string, unnamed bool) {
	t.Helper()
	var left []string
	if !deadline.Until(proctest.Timeout, func() bool {
		left = nil
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if !unnamed || !strings.HasPrefix(entry.Name(), journal.UnnamedPrefix) ||
				strings.HasSuffix(entry.Name(), journal.Suffix) {
				left = append(left, entry.Name())
			}
		}
		return len(left) == 0
	}) {
		t.Fatalf("left: %q", left)
	}
}
