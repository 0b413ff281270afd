package denials

import (
	"os"
	"testing"
)

// A session may open more files than are remembered. None of them gets a mark
// then; the control is a file of the session's own before.
func TestGiven_HasABound(t *testing.T) {
	t.Parallel()
	open := func() int {
		file, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return int(file.Fd())
	}
	answered, own, last := open(), open(), open()
	var g given
	if err := g.add(answered); err != nil || !g.has(answered) || g.has(own) {
		t.Fatalf("%v, has %t and %t", err, g.has(answered), g.has(own))
	}
	for i := uint64(0); len(g.files) < maxGiven; i++ {
		g.files[fileID{^uint64(0), i}] = true
	}
	if err := g.add(answered); err != nil || g.has(own) {
		t.Errorf("a file that is known takes room: %v", err)
	}
	if err := g.add(last); err != nil || !g.has(answered) || !g.has(last) || len(g.files) > maxGiven {
		t.Errorf("%v: %d files", err, len(g.files))
	}
	if g.add(-1) == nil || !g.has(-1) {
		t.Error("what cannot be told is no file of the session's own")
	}
}
