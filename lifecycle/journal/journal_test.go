//go:build unix

package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

func TestMain(m *testing.M) { proctest.Main(m, nil) }

// enders take the place of the mechanisms: they remove directories of the state
// directory.
var enders = []Ender{{Kind: "directory", End: func(_ context.Context, records []Record, where Place) (int, error) {
	var failures []error
	for _, r := range records {
		if filepath.Dir(r.Key) == where.StateDir {
			failures = append(failures, os.RemoveAll(r.Key))
		}
	}
	return 0, errors.Join(failures...)
}}}

// data is what a mechanism might record.
type data struct {
	ID        int    `json:"id"`
	Start     string `json:"start"`
	Autogroup string `json:"autogroup,omitempty"`
}

// A sidecar can die before it has locked its journal, or be so slow that a
// sweep takes it for dead.
func TestSweep_RemovesAJournalThatWasNeverLocked(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	born, err := os.CreateTemp(dir, UnnamedPrefix)
	if err != nil {
		t.Fatal(err)
	}
	born.Close()
	if err := Sweep(context.Background(), dir, enders); err != nil {
		t.Fatal(err)
	}
	if proctest.Exist(born.Name()) {
		t.Error("it is left")
	}
}

func TestNew_DuringSweeps(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	ctx, cancel := context.WithCancel(context.Background())
	swept := make(chan error)
	go func() {
		var failures []error
		for ctx.Err() == nil {
			failures = append(failures, Sweep(ctx, dir, enders))
		}
		swept <- errors.Join(failures...)
	}()
	for range 500 {
		j, err := New(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !proctest.Exist(j.path) {
			t.Fatal("a journal is gone as soon as it was made")
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-swept; err != nil {
		t.Error(err)
	}
}

// A sweep whose context has ended leaves a long journal in place, at once.
func TestSweep_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	path := proctest.Forge(t, dir, NewRecord("directory", filepath.Join(dir, "s1"), nil))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := clean(ctx, path, enders); !errors.Is(err, context.Canceled) || !proctest.Exist(path) {
		t.Errorf("%v, there %t", err, proctest.Exist(path))
	}
}

// Ten thousand sessions leave a small journal, which still lists what lives.
func TestJournal_IsCompacted(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(dir string) (*Journal, error){
		"file": New, "memory": func(string) (*Journal, error) { return NewMemory() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := proctest.StateDir(t)
			j, err := make(dir)
			if err != nil {
				t.Fatal(err)
			}
			var largest int64
			write := func(r Record) {
				t.Helper()
				if err := j.Write(r); err != nil {
					t.Fatal(err)
				}
				info, err := j.file.Stat()
				if err != nil {
					t.Fatal(err)
				}
				largest = max(largest, info.Size())
			}
			write(NewRecord("directory", "/lives", nil))
			for i := range 10_000 {
				private := fmt.Sprintf("/state/s%012x", i)
				write(NewRecord("directory", private, nil))
				write(NewRecord("subreaper", strconv.Itoa(2*i+10), data{Start: "123456"}))
				write(NewRecord("session", strconv.Itoa(2*i+11), data{2*i + 11, "123456", "/autogroup-123456"}))
				write(NewRecord("fingerprint", fmt.Sprint(i), map[string]string{"dir": private}))
				write(NewPart("fingerprint", fmt.Sprint(i), fmt.Sprint(i), map[string]string{"boot": "b"}))
				write(NewPart("fingerprint", fmt.Sprint(i), fmt.Sprint(i+1), map[string]string{"boot": "b"}))
				write(EndedPart("fingerprint", fmt.Sprint(i), fmt.Sprint(i)))
				if i == 5000 {
					continue // this one stays
				}
				write(Ended("fingerprint", fmt.Sprint(i)))
				write(Ended("subreaper", strconv.Itoa(2*i+10)))
				write(Ended("session", strconv.Itoa(2*i+11)))
				write(Ended("directory", private))
			}
			read, err := readJournal(proctest.Soon(t), j.reader)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d bytes at most", largest)
			if largest > 2*leastCompaction {
				t.Errorf("it has grown to %d bytes", largest)
			}
			var got []string
			for _, r := range read.list() {
				line, _ := json.Marshal(r)
				got = append(got, string(line))
			}
			want := []string{
				`{"kind":"directory","key":"/lives"}`, `{"kind":"directory","key":"/state/s000000001388"}`,
				`{"kind":"subreaper","key":"10010","data":{"id":0,"start":"123456"}}`,
				`{"kind":"session","key":"10011","data":{"id":10011,"start":"123456","autogroup":"/autogroup-123456"}}`,
				`{"kind":"fingerprint","key":"5000","data":{"dir":"/state/s000000001388"}}`,
				`{"kind":"fingerprint","key":"5000","part":"5001","data":{"boot":"b"}}`,
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") || read.origin == nil || *read.origin != Here() {
				t.Errorf("it lists, from %v:\n%s", read.origin, strings.Join(got, "\n"))
			}
			if name == "file" && !j.InPlace() {
				t.Error("its name leads to another file")
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A sweep finds everything in each state of the files during a compaction,
// including each length of the new file.
func TestJournal_EachStateOfACompactionIsComplete(t *testing.T) {
	t.Parallel()
	for state := 0; ; state++ {
		dir := proctest.StateDir(t)
		j, err := New(dir)
		if err != nil {
			t.Fatal(err)
		}
		var private []string
		for i := range 3 {
			private = append(private, filepath.Join(dir, fmt.Sprintf("s%d", i)))
			if err := errors.Join(j.Write(NewRecord("directory", private[i], nil)),
				os.Mkdir(private[i], 0o700)); err != nil {
				t.Fatal(err)
			}
		}
		text, err := j.entries.text()
		if err != nil {
			t.Fatal(err)
		}
		last := state > len(text)
		if last {
			if err := j.begin(dir, j.path); err != nil {
				t.Fatal(err)
			}
		} else {
			made, err := makeJournal(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := made.file.Write(text[:state]); err != nil {
				t.Fatal(err)
			}
			made.close()
		}
		if err := j.Leave(); err != nil {
			t.Fatal(err)
		}
		sweepAll(t, dir)
		if last {
			t.Logf("%d states", state+1)
			return
		}
	}
}

// sweepAll sweeps until nothing is left. A process that another test has just
// forked shares our lock for a moment.
func sweepAll(t *testing.T, dir string) {
	t.Helper()
	var left []os.DirEntry
	if !deadline.Until(proctest.Timeout, func() bool {
		if err := Sweep(proctest.Soon(t), dir, enders); err != nil {
			t.Error(err)
		}
		left, _ = os.ReadDir(dir)
		return len(left) == 0
	}) {
		t.Fatalf("left: %v", left)
	}
}

// A sweep opens a journal just before its owner continues in another file, and
// then gets the lock. It must not take the owner for dead.
func TestSweep_LeavesAFileThatItsOwnerHasReplaced(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	j, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(dir, "s1")
	if err := errors.Join(j.Write(NewRecord("directory", private, nil)), os.Mkdir(private, 0o700)); err != nil {
		t.Fatal(err)
	}
	opened, err := Open(j.path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if err := j.Compact(); err != nil {
		t.Fatal(err)
	}
	if err := Lock(opened, unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("the file before is not locked: an older version would carry it out (%v)", err)
	}
	if names(j.path, opened) {
		t.Error("it was not written again: this test shows nothing")
	}
	if err := Sweep(proctest.Soon(t), dir, enders); err != nil || !proctest.Exist(private) {
		t.Errorf("%v, there %t", err, proctest.Exist(private))
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// A journal that could not be made says why, not that somebody has closed it.
func TestWrite_SaysWhyThereIsNoJournal(t *testing.T) {
	t.Parallel()
	j, err := New(filepath.Join(t.TempDir(), "missing"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("made: %v", err)
	}
	if err := j.Write(NewRecord("kind", "key", nil)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	dir := t.TempDir()
	if err := j.MoveTo(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("move without a file: %v", err)
	}
	made, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	if err := made.Write(NewRecord("kind", "key", nil)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
