//go:build unix

package fsguard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// newRemote is a file system without a call under way. A busy machine may take
// any time for a call.
func newRemote() *remote {
	return &remote{kind: "test", slots: make(chan struct{}, atOnce), timeout: time.Hour}
}

// opHang is an operation that opens a FIFO directly, and so waits for its other
// end.
const opHang operation = "hang"

var _ = Define(string(opHang), func(path string, _ []byte) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return nil, file.Close()
})

// fifo is a call that hangs until release opens the other end.
func fifo(t *testing.T) (q request, release func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return request{Op: opHang, Path: text(path)}, func() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
}

func TestCall_GivesUpOnceAndThenFailsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRemote()
	r.timeout = timeout
	q, release := fifo(t)
	start := time.Now()
	if _, err := r.call(q); !errors.Is(err, ErrNoAnswer) {
		t.Fatalf("a call that hangs: %v", err)
	}
	if took := time.Since(start); took < timeout {
		t.Errorf("it was given up after %s", took)
	}
	// Now the next call could take as long as it likes: it is not made.
	r.timeout = time.Hour
	if _, err := r.call(request{Op: opLstat, Path: text("/")}); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("another call meanwhile: %v", err)
	}
	release()
	var err error
	if !deadline.Until(20*time.Second, func() bool {
		_, err = r.call(request{Op: opLstat, Path: text("/")})
		return err == nil
	}) {
		t.Fatalf("after its answer: %v", err)
	}
}

func TestCall_BoundsCallsUnderWay(t *testing.T) {
	t.Parallel()
	r := newRemote()
	r.timeout = timeout
	q, release := fifo(t)
	failures := make(chan error)
	for range 3 * atOnce {
		go func() {
			_, err := r.call(q)
			failures <- err
		}()
	}
	for range 3 * atOnce {
		if err := <-failures; !errors.Is(err, ErrNoAnswer) {
			t.Errorf("a call that hangs: %v", err)
		}
	}
	r.mu.Lock()
	if r.overdue > atOnce {
		t.Errorf("%d calls wait", r.overdue)
	}
	r.mu.Unlock()
	release()
}

// The helper's answers equal those of direct calls.
func TestPerform_ReturnsTheSystemsAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a\xffb") // not UTF-8
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o640),
		os.Symlink("a\xffb", filepath.Join(dir, "link"))); err != nil {
		t.Skipf("this file system has no such names: %v", err)
	}
	r := newRemote()
	info, err := r.info(request{Op: opLstat, Path: text(file)})
	if err != nil {
		t.Fatal(err)
	}
	want, _ := os.Lstat(file)
	stat, _ := info.Sys().(*syscall.Stat_t)
	if info.Name() != want.Name() || info.Size() != 4 || info.Mode() != want.Mode() || info.IsDir() ||
		!info.ModTime().Equal(want.ModTime()) ||
		!reflect.DeepEqual(stat, want.Sys()) {
		t.Errorf("it is %+v, %+v", info, stat)
	}
	far := time.Unix(300_000_000_000, 5) // the year 11476, which JSON cannot represent
	if err := os.Chtimes(file, far, far); err == nil {
		if want, err = os.Lstat(file); err != nil {
			t.Fatal(err)
		}
		if info, err = r.info(request{Op: opLstat, Path: text(file)}); err != nil ||
			!info.ModTime().Equal(want.ModTime()) {
			t.Errorf("a file of %v: %v", want.ModTime(), err)
		}
	}
	if done, err := r.call(request{
		Op:   opReadlink,
		Path: text(filepath.Join(dir, "link")),
	}); string(done.Text) != "a\xffb" || err != nil {
		t.Errorf("the link leads to %q, %v", done.Text, err)
	}
	if done, err := r.call(request{Op: opReadDir, Path: text(dir)}); err != nil || len(done.Entries) != 2 ||
		string(done.Entries[0].Name) != "a\xffb" {
		t.Errorf("the directory holds %+v, %v", done.Entries, err)
	}
	if done, err := r.call(request{Op: opReadFile, Path: text(file), Most: 2}); string(done.Data) != "tex" ||
		err != nil || !done.Info.ModTime().Equal(done.After.ModTime()) {
		t.Errorf("the file holds %q, %v", done.Data, err)
	}
	_, err = r.info(request{Op: opStat, Path: text(filepath.Join(dir, "none"))})
	if failed, ok := errors.AsType[*fs.PathError](err); !ok || !errors.Is(err, fs.ErrNotExist) ||
		failed.Path != filepath.Join(dir, "none") {
		t.Errorf("what is not there: %v", err)
	}
	if _, err := r.call(request{Op: opMkdirAll, Path: text(filepath.Join(dir, "x/y")), Mode: 0o700}); err != nil {
		t.Error(err)
	}
	if _, err := r.call(request{Op: opMkdirAll, Path: text(filepath.Join(file, "y")), Mode: 0o700}); !errors.Is(err,
		syscall.ENOTDIR) {
		t.Errorf("a directory below a file: %v", err)
	}
}

func TestReal_FollowsAsTheKernelDoes(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.MkdirAll(at("a/b"), 0o700), os.Symlink("a", at("relative")), os.Symlink(at("a/b"),
			at("absolute")), os.Symlink("loop", at("loop")),
		os.Symlink("missing/x", at("dangling")),
	); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a/b": "a/b", "relative/b/": "a/b", "absolute/../b/.": "a/b", "dangling/y": "missing/x/y",
		"a/none/deep": "a/none/deep",
	} {
		if got, err := real(dir+"/"+path, true); got != at(want) || err != nil {
			t.Errorf("%s leads to %s, %v", path, got, err)
		}
	}
	if got, err := real(at("relative/../relative"), false); got != at("relative") || err != nil {
		t.Errorf("a link that is not to be followed: %s, %v", got, err)
	}
	for _, path := range []string{"missing/../a", "a/none/../b"} {
		if got, err := real(dir+"/"+path, true); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s leads to %s, %v; the kernel finds nothing", path, got, err)
		}
	}
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := real(dir+"/file/../a", true); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("what is behind a file: %s, %v", got, err)
	}
	if err := MkdirAll(at("dangling"), 0o700); err == nil {
		t.Error("a directory was made behind a dangling symlink")
	}
	if _, err := os.Lstat(at("missing")); err == nil {
		t.Error("a directory was made at the end of a symlink")
	}
	if _, err := real(at("loop"), true); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a circle: %v", err)
	}
}
