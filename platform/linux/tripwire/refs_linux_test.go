package tripwire

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// Whatever happens in a directory of refs is noticed, also in one that was made
// anew. Locks are not.
func TestTripwire_NoticesChangesOfRefs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	must(os.MkdirAll(in("refs/heads"), 0o700))
	must(os.WriteFile(in("outside"), nil, 0o600))
	must(os.WriteFile(in("refs/heads/gone"), nil, 0o600))
	var touched atomic.Int64
	wire, err := New(Options{
		Refs: []string{in("refs"), in("refs/heads"), in("missing")}, Mounted: true,
		Touched: func() { touched.Add(1) },
		Report:  func(kind Kind, path string) { t.Errorf("reported %v %s", kind, path) },
	})
	must(err)
	t.Cleanup(wire.Close)
	shared.settle()
	for _, test := range []struct {
		name string
		act  func() error
		want bool
	}{
		{"a file is written", func() error { return os.WriteFile(in("refs/heads/main"), []byte("x"), 0o600) }, true},
		{"a file is renamed into it", func() error { return os.Rename(in("outside"), in("refs/heads/new")) }, true},
		{"a file is removed", func() error { return os.Remove(in("refs/heads/gone")) }, true},
		{"a lock is written", func() error {
			return os.WriteFile(in("refs/heads/main.lock"), []byte("x"), 0o600)
		}, false},
		{"a file beside it is written", func() error { return os.WriteFile(in("beside"), []byte("x"), 0o600) }, false},
		{"a directory is made", func() error { return os.Mkdir(in("refs/heads/topic"), 0o700) }, true},
		{"a file in that is written", func() error {
			if !wire.Refs([]string{in("refs/heads"), in("refs/heads/topic"), in("none")}) ||
				wire.Refs([]string{in("refs")}) {
				t.Error("only one directory is new")
			}
			return os.WriteFile(in("refs/heads/topic/one"), []byte("x"), 0o600)
		}, true},
		{"a file is moved out", func() error { return os.Rename(in("refs/heads/topic/one"), in("one")) }, true},
		{"the directory is removed", func() error { return os.Remove(in("refs/heads/topic")) }, true},
		{"it is made anew", func() error { return os.Mkdir(in("refs/heads/topic"), 0o700) }, true},
		{"a file in the new one is written", func() error {
			if !wire.Refs([]string{in("refs/heads/topic")}) {
				t.Error("it counts as watched")
			}
			return os.WriteFile(in("refs/heads/topic/one"), []byte("x"), 0o600)
		}, true},
	} {
		before := touched.Load()
		must(test.act())
		noticed := func() bool { return touched.Load() > before }
		if test.want {
			deadline.Until(20*time.Second, noticed)
		}
		shared.settle()
		if noticed() != test.want {
			t.Errorf("%s: noticed %v", test.name, !test.want)
		}
	}
}
