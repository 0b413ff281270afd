//go:build unix

package lifecycle

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// What a journal says of fingerprints is gathered by their ids: each member of
// a session is a line of its own.
func TestJournal_GathersWhatBelongsToAMark(t *testing.T) {
	t.Parallel()
	j, err := newJournal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Record{
		NewRecord(kindFingerprint, "a", fingerprintData{Dir: "/state/a"}),
		NewRecord(kindFingerprint, "b", fingerprintData{Dir: "/state/b"}),
		NewPart(kindFingerprint, "a", "7", fingerprintData{Boot: "boot"}),
		NewPart(kindFingerprint, "a", "8", fingerprintData{Boot: "boot"}),
		{Kind: kindFingerprint, Key: "c", Data: json.RawMessage("7")},
	} {
		if err := j.write(r); err != nil {
			t.Fatal(err)
		}
	}
	read, err := readJournal(soon(t), j.reader)
	if err != nil {
		t.Fatal(err)
	}
	found, senseless := gatherMarked(read.list())
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
	if err := j.close(); err != nil {
		t.Error(err)
	}
}

// A journal whose sessions have all ended is done, also on a system that could
// not end them.
func TestSweep_LeavesEndedMarksAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dead := dir + "/1" + journalSuffix
	if err := os.WriteFile(dead, []byte(`{"kind":"fingerprint","key":"a","data":{"dir":"/state/a"}}`+"\n"+`{"kind":"fingerprint","key":"a","over":true}`+"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(soon(t), dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("the journal is left")
	}
}
