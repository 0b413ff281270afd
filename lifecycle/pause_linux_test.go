package lifecycle

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/cgroup"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/subreaper"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// counter is a command whose two processes count by the lengths of two files,
// one of them in a session of its own. It prints the id of a third one, which
// is stopped.
func counter(dir string) *exec.Cmd {
	const line = `read x; count='while test -d "$0"; do printf . >>"$0/$1"; done'
sh -c "$count" "$1" leader & setsid sh -c "$count" "$1" other &
sleep 1000 & kill -STOP $!; echo "ready $!"; wait`
	command := exec.Command("/bin/sh", "-c", line, "sh", dir)
	command.Env = os.Environ()
	return command
}

func count(dir, name string) int64 {
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return 0
	}
	return info.Size()
}

// goesOn waits until both have counted further.
func goesOn(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"leader", "other"} {
		from := count(dir, name)
		if !deadline.Until(proctest.Timeout, func() bool { return count(dir, name) > from }) {
			t.Fatalf("%s stands still", name)
		}
	}
}

// pausable is a group that can be paused.
type pausable interface {
	Start(path string, argv []string, attr *os.ProcAttr) (proc.Process, error)
	Pause(ctx context.Context) (func() error, error)
	Kill(ctx context.Context) (int, error)
	Close() error
}

func TestPause_StopsAndContinuesEveryProcess(t *testing.T) {
	t.Parallel()
	for name, group := range map[string]func(t *testing.T) pausable{
		"subreaper": func(t *testing.T) pausable {
			k, err := subreaper.Open(subreaperCommand, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			return k.NewGroup(nil)
		},
		"cgroup": func(t *testing.T) pausable {
			tree, err := cgroup.Open(nil, func(journal.Record) error { return nil })
			if err != nil {
				skipWithoutCgroups(t, err)
			}
			t.Cleanup(func() {
				if err := tree.Close(); err != nil {
					t.Error(err)
				}
			})
			group, err := tree.NewGroup("paused")
			if err != nil {
				t.Fatal(err)
			}
			return group
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			group := group(t)
			t.Cleanup(func() {
				if _, err := group.Kill(proctest.Soon(t)); err != nil {
					t.Error(err)
				}
				if err := group.Close(); err != nil {
					t.Error(err)
				}
			})
			stopped := proctest.StartIn(t, group.Start, counter(dir))[1]
			goesOn(t, dir)
			if !deadline.Until(proctest.Timeout, func() bool {
				entry, err := proc.Find(stopped)
				return err == nil && entry.Stopped // a signal to stop takes a moment
			}) {
				t.Fatal("no process is stopped")
			}
			for range 3 {
				resume, err := group.Pause(proctest.Soon(t))
				if err != nil {
					t.Fatal(err)
				}
				before := [2]int64{count(dir, "leader"), count(dir, "other")}
				time.Sleep(200 * time.Millisecond) // each would count by hundreds in this time
				if after := [2]int64{count(dir, "leader"), count(dir, "other")}; after != before {
					t.Errorf("counted from %v to %v while paused", before, after)
				}
				if err := resume(); err != nil {
					t.Fatal(err)
				}
				goesOn(t, dir)
				// What the user has stopped stays so.
				if entry, err := proc.Find(stopped); err != nil || !entry.Stopped {
					t.Errorf("the stopped process: %+v, %v", entry, err)
				}
			}
			// A paused process can be killed.
			if _, err := group.Pause(proctest.Soon(t)); err != nil {
				t.Fatal(err)
			}
			if killed, err := group.Kill(proctest.Soon(t)); err != nil || killed < 3 {
				t.Errorf("killed %d: %v", killed, err)
			}
			proctest.MustBeGone(t, []int{stopped})
		})
	}
}
