package usersocket

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// listens has this test's program listen on the socket at descriptor 3, if there is
// one, until its input ends.
const listens = "USERSOCKET_LISTENS"

func TestMain(m *testing.M) {
	if os.Getenv(listens) != "" {
		if unix.Listen(3, 8) == nil {
			_, _ = os.Stdout.WriteString("listens\n")
		}
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A socket may outlive the process that made it listen, whose number is then that of
// any process. So a peer that has ended is refused.
func TestDial_RefusesAPeerThatHasEnded(t *testing.T) {
	t.Parallel()
	stateDir := filepath.Join(harness.ShortDir(t), "state")
	dir := filepath.Join(stateDir, "s1")
	harness.Must(t, os.MkdirAll(dir, 0o700))
	path := filepath.Join(dir, "socket")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	harness.Must(t, err)
	socket := os.NewFile(uintptr(fd), "socket")
	defer socket.Close()
	harness.Must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	harness.Must(t, os.Chmod(path, 0o600))
	child := exec.Command(os.Args[0])
	child.Env, child.ExtraFiles = append(os.Environ(), listens+"=1"), []*os.File{socket}
	input, err := child.StdinPipe()
	harness.Must(t, err)
	output, err := child.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, child.Start())
	said := make([]byte, 8)
	if _, err := output.Read(said); err != nil || string(said) != "listens\n" {
		t.Fatalf("the other process: %q, %v", said, err)
	}
	dial := func() (*net.UnixConn, int, error) {
		return Dial(stateDir, path, "socket", time.Now().Add(time.Minute))
	}
	c, pid, err := dial()
	if err != nil || pid != child.Process.Pid {
		t.Fatalf("control: process %d, %v", pid, err)
	}
	c.Close()
	input.Close()
	_ = child.Wait()
	// Whether its number is free or another process's by now is the same.
	if c, pid, err := dial(); err == nil {
		c.Close()
		t.Errorf("a connection to process %d, which has ended", pid)
	}
}

// The number of a peer that has ended may be another process's by now, which has no
// filter. So what is asked about it is asked of one that still lives.
func TestPeer_HasItsNumberOnlyWhileItLives(t *testing.T) {
	t.Parallel()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), listens+"=1")
	input, err := child.StdinPipe()
	harness.Must(t, err)
	harness.Must(t, child.Start())
	defer func() { _ = child.Wait() }()
	peerWith := func(number int) peer {
		fd, err := unix.PidfdOpen(child.Process.Pid, 0)
		harness.Must(t, err)
		return peer{pid: number, lives: os.NewFile(uintptr(fd), "peer")}
	}
	if err := peerWith(os.Getpid()).free(); err != nil {
		t.Errorf("control: one that lives: %v", err)
	}
	ended := peerWith(os.Getpid())
	input.Close()
	_ = child.Wait()
	if err := ended.free(); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("one that has ended, whose number is this process's: %v", err)
	}
}
