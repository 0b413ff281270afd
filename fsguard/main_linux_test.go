package fsguard

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// TestMain also plays the helper: the tests start themselves again.
func TestMain(m *testing.M) {
	if os.Getenv("FSGUARD_HELPER") != "" {
		os.Exit(RunHelper())
	}
	SetHelper(func(files []*os.File) error {
		process, err := os.StartProcess("/proc/self/exe", []string{"helper"}, &os.ProcAttr{
			Env: []string{"FSGUARD_HELPER=1"}, Files: append([]*os.File{nil, nil, os.Stderr}, files...),
		})
		if err != nil {
			return err
		}
		helperPIDs.mu.Lock()
		helperPIDs.last = process.Pid
		helperPIDs.mu.Unlock()
		go func() { _, _ = process.Wait() }()
		return nil
	})
	os.Exit(m.Run())
}

var helperPIDs struct {
	mu   sync.Mutex // guards last
	last int
}

// The answer comes from another process. If that dies, its calls fail, and
// another helper replaces it.
func TestHelper_IsReplacedWhenItDies(t *testing.T) {
	r := newRemote()
	var pid int
	for asked := false; !asked; {
		if _, err := r.call(request{Op: opLstat, Path: text("/")}); err != nil {
			t.Fatal(err)
		}
		q, release := fifo(t)
		var err error
		failed := make(chan struct{})
		go func() {
			defer close(failed)
			_, err = r.call(q)
		}()
		helperPIDs.mu.Lock()
		pid = helperPIDs.last
		helperPIDs.mu.Unlock()
		if pid == 0 || pid == os.Getpid() {
			t.Fatalf("the helper is process %d", pid)
		}
		if !deadline.Until(20*time.Second, func() bool { return len(helperPending()) > 0 }) {
			t.Fatal("the helper is asked nothing")
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		// If it died before the message was written, another helper got that.
		if asked = deadline.New(5 * time.Second).Wait(failed); !asked {
			release()
			<-failed
			continue
		}
		if err == nil || errors.Is(err, ErrNoAnswer) {
			t.Errorf("what the dead one was asked: %v", err)
		}
	}
	if _, err := r.call(request{Op: opLstat, Path: text("/")}); err != nil {
		t.Errorf("the next call: %v", err)
	}
	helperPIDs.mu.Lock()
	defer helperPIDs.mu.Unlock()
	if helperPIDs.last == pid {
		t.Error("no helper has replaced it")
	}
}

// A call right after the helper's death is another helper's, or fails: a thread of
// this process that hung would stay.
func TestHelper_NoCallIsMadeHereWhileItDies(t *testing.T) {
	r := newRemote()
	own := fmt.Sprintf("in process %d", os.Getpid())
	ask := func() string {
		_, err := r.call(request{Op: opLength, Path: text("/")})
		said := fmt.Sprint(err)
		if strings.Contains(said, own) {
			t.Fatalf("it was made here: %s", said)
		}
		return said
	}
	for range 100 {
		for !strings.Contains(ask(), "in process") { // that of the one before may still be told
		}
		helperPIDs.mu.Lock()
		pid := helperPIDs.last
		helperPIDs.mu.Unlock()
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		ask()
	}
}

// opLength is a call whose error tells how much of its arguments has come.
const opLength operation = "length"

var _ = Define(string(opLength), func(path string, data []byte) ([]byte, error) {
	return nil, fmt.Errorf("%d and %d bytes in process %d", len(path), len(data), os.Getpid())
})

// A message to the helper holds the longest path with mostData. More comes in a
// file, and no descriptor is left.
func TestDefine_DataOfAnyLengthReachesTheHelper(t *testing.T) {
	before := descriptors(t)
	for _, size := range []int{mostData, mostData + 1, 5 << 20} {
		data := bytes.Repeat([]byte("abc"), size/3+1)[:size]
		q := request{Op: opLength, Path: text(strings.Repeat("/x", unix.PathMax/2)), Data: data}
		_, err := newRemote().call(q)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d and %d bytes", unix.PathMax, size)) ||
			strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if after := descriptors(t); after > before+3 { // the helper's own ends
		t.Errorf("%d descriptors, before %d", after, before)
	}
	if _, err := newRemote().call(request{Op: opLstat, Path: text("/")}); err != nil {
		t.Error(err)
	}
}

func helperPending() map[uint64]pending {
	helper.mu.Lock()
	defer helper.mu.Unlock()
	helper.current.mu.Lock()
	defer helper.current.mu.Unlock()
	list := map[uint64]pending{}
	for id, p := range helper.current.pending {
		if p.Op == opHang {
			list[id] = p
		}
	}
	return list
}

// A watch that the helper adds belongs to this process's own inotify instance.
func TestAddWatch_IsOfTheInstanceThatWasGiven(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	r := newRemote()
	done, err := r.call(request{Op: opWatch, Path: text(dir), Mask: unix.IN_CREATE, passed: fd})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 256)
	if n, err := unix.Read(fd, buffer); err != nil || n < unix.SizeofInotifyEvent || int(buffer[0]) != done.Number {
		t.Errorf("read %d bytes, %v, for watch %d: % x", n, err, done.Number, buffer[:4])
	}
}

func TestPlain_RefusesSymlinks(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "a"), 0o700),
		os.Symlink("a", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	r := newRemote()
	for name, want := range map[string]error{"a": nil, "link": syscall.ELOOP, "none": fs.ErrNotExist} {
		_, err := r.call(request{Op: opPlain, Path: text(filepath.Join(dir, name))})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
