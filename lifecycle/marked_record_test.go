//go:build unix

package lifecycle

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

// The records of fingerprints are grouped by their ids: each member of a
// session has a line of its own.
func TestGatherMarked_GroupsByFingerprint(t *testing.T) {
	t.Parallel()
	found, senseless := gatherMarked([]journal.Record{
		journal.NewRecord(kindFingerprint, "a", fingerprintData{Dir: "/state/a"}),
		journal.NewRecord(kindFingerprint, "b", fingerprintData{Dir: "/state/b"}),
		journal.NewPart(kindFingerprint, "a", "7", fingerprintData{Boot: "boot"}),
		journal.NewPart(kindFingerprint, "a", "8", fingerprintData{Boot: "boot"}),
		{Kind: kindFingerprint, Key: "c", Data: json.RawMessage("7")},
	})
	if len(found) != 2 || senseless != 1 {
		t.Fatalf("%+v, and %d make no sense", found, senseless)
	}
	a, b := found[0], found[1]
	if a.fingerprint != (SessionFingerprint{"a", "/state/a"}) || !slices.Equal(a.relatives, []uint64{7, 8}) ||
		a.boot != "boot" {
		t.Errorf("a: %+v", a)
	}
	if b.fingerprint != (SessionFingerprint{"b", "/state/b"}) || b.relatives != nil {
		t.Errorf("b: %+v", b)
	}
}

// A journal whose sessions have all ended is removed, also on a system that
// could not end them.
func TestSweep_LeavesEndedMarksAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dead := dir + "/1" + journal.Suffix
	const lines = `{"kind":"fingerprint","key":"a","data":{"dir":"/state/a"}}
{"kind":"fingerprint","key":"a","over":true}
`
	if err := os.WriteFile(dead, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(proctest.Soon(t), dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("the journal is left")
	}
}
