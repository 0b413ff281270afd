package cgroup

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

func init() { proctest.Helpers["track"] = track }

// track is the sidecar of the next test: it tracks one process and prints the
// result.
func track([]string) {
	tree, err := openCgroupTree(func(journal.Record) error { return nil })
	if err != nil {
		fmt.Println("ready 0 0 0 0")
		return
	}
	lives, killed, closed := 0, 0, 0
	group, err := tree.NewGroup("g")
	if err != nil {
		panic(err)
	}
	process, gate, output, err := proctest.Start(group.Start, proctest.Helper("wait"))
	if err != nil {
		panic(err)
	}
	gate.Close()
	if proctest.ReadReady(output) != nil { // a child that was killed at birth prints nothing
		lives = 1
	}
	killed, err = group.Kill(context.Background())
	_, _ = process.Wait(false)
	if errors.Join(err, group.Close(), tree.Close()) == nil {
		closed = 1
	}
	fmt.Println("ready 1", lives, killed, closed)
}

func TestTree_InACgroupThatWasKilledOnce(t *testing.T) {
	t.Parallel()
	tree := newTree(t)
	tree.bornInside = false // the sidecar is moved, so that it is not killed at birth itself
	home := newCgroup(t, tree, "home")
	dummy := proctest.StartIn(t, home.Start, proctest.Helper("wait"))
	if killed, err := home.Kill(proctest.Soon(t)); killed != 1 || err != nil {
		t.Fatalf("killed %d, %v", killed, err)
	}
	proctest.MustBeGone(t, dummy)
	got := proctest.StartIn(t, home.Start, proctest.Helper("track"))
	if len(got) != 5 {
		t.Fatalf("the sidecar in the killed cgroup reports %v", got)
	}
	if opened, lives, killed, closed := got[1], got[2], got[3], got[4]; opened != 1 || lives != 1 || killed != 1 ||
		closed != 1 {
		t.Errorf("opened %d, child lives %d, killed %d, closed %d", opened, lives, killed, closed)
	}
	if _, err := home.Kill(proctest.Soon(t)); err != nil {
		t.Error(err)
	}
	if err := home.Close(); err != nil {
		t.Error(err)
	}
}
