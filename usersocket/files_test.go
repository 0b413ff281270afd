//go:build unix

package usersocket

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// pair makes both ends of a connection over a socket at a proper place.
func pair(t *testing.T) (here, there *Conn) {
	t.Helper()
	stateDir := filepath.Join(harness.ShortDir(t), "state")
	dir := filepath.Join(stateDir, "s1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(dir, "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c, pid, err := Dial(stateDir, filepath.Join(dir, "socket"), "socket", time.Now().Add(time.Minute))
	if err != nil || pid != os.Getpid() {
		t.Fatalf("dial: process %d, %v", pid, err)
	}
	accepted, err := listener.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	here, there = NewConn(c, 1000), NewConn(accepted, 1000)
	t.Cleanup(here.Close)
	t.Cleanup(there.Close)
	return here, there
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// Files come with the message, as many as are taken; the connection ends by more.
func TestFiles(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	there.TakeFiles(1)
	r, w := pipe(t)
	if err := here.Send("one", w); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := there.Receive(&got); err != nil || got != "one" {
		t.Fatalf("received %q: %v", got, err)
	}
	files := there.Files()
	if len(files) != 1 {
		t.Fatalf("%d files came", len(files))
	}
	_, _ = files[0].WriteString("through")
	files[0].Close()
	w.Close()
	if text, _ := io.ReadAll(r); string(text) != "through" {
		t.Errorf("the file is another: %q", text)
	}
	r, w = pipe(t)
	if err := here.Send("two", r, w); err != nil {
		t.Fatal(err)
	}
	if err := there.Receive(&got); !errors.Is(err, errFiles) {
		t.Errorf("two files: %v", err)
	}
}

// A sender waits for a peer that does not read for as long as it was set to, and not
// longer.
func TestWaitToSend(t *testing.T) {
	t.Parallel()
	send := func(patience, reads time.Duration) error {
		here, there := pair(t)
		here, there = NewConn(here.net, 8<<20), NewConn(there.net, 8<<20)
		here.WaitToSend(patience)
		sent := make(chan error, 1)
		go func() { sent <- here.Send(strings.Repeat("x", 4<<20)) }()
		select {
		case err := <-sent:
			return err
		case <-time.After(reads):
		}
		var got string
		if err := there.Receive(&got); err != nil {
			t.Errorf("receive: %v", err)
		}
		return <-sent
	}
	if err := send(time.Minute, 50*time.Millisecond); err != nil {
		t.Errorf("a peer that reads late: %v", err)
	}
	if err := send(time.Millisecond, time.Second); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("control: a peer that does not read: %v", err)
	}
}

// Whoever takes no files is given none: the pipe's other end sees the end.
func TestFilesThatNobodyTakes(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	r, w := pipe(t)
	if err := here.Send("one", w); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var got string
	if err := there.Receive(&got); err != nil || len(there.Files()) > 0 {
		t.Errorf("received %q: %v", got, err)
	}
	if text, err := io.ReadAll(r); err != nil || len(text) > 0 {
		t.Errorf("read %q: %v", text, err)
	}
}

// A socket has its name only once it listens, and elsewhere nobody connects.
func TestDialElsewhere(t *testing.T) {
	t.Parallel()
	stateDir := filepath.Join(harness.ShortDir(t), "state")
	dir := filepath.Join(stateDir, "deep", "s1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	path := filepath.Join(dir, "socket")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(time.Minute)
	if _, _, err := Dial(stateDir, path, "socket", end); err == nil {
		t.Error("connected two directories below the state directory")
	}
	if _, _, err := Dial(filepath.Dir(dir), path, "other", end); err == nil {
		t.Error("connected to a socket of another name")
	}
	c, _, err := Dial(filepath.Dir(dir), path, "socket", end)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	c.Close()
}
