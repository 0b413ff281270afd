//go:build unix

package lifecycle

import (
	"bufio"
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
	for _, r := range []record{
		{Mark: "a", MarkDir: "/state/a"}, {Mark: "b", MarkDir: "/state/b"}, {Mark: "a", Relative: 7, Boot: "boot"},
		{Mark: "a", Relative: 8, Boot: "boot"},
	} {
		if err := j.write(r); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(j.path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	marks := map[string]*marked{"a": {}, "b": {}}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Mark != "" { // the first line says where the journal is from
			marks[r.Mark].add(r)
		}
	}
	a, b := marks["a"], marks["b"]
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
	if err := os.WriteFile(dead, []byte("{\"mark\":\"a\",\"markDir\":\"/state/a\"}\n{\"unmark\":\"a\"}\n"),
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
