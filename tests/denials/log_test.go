//go:build linux

package denials

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// confinesItself is a program that denies itself to read files by Landlock, and
// then reads one.
const confinesItself = `
import ctypes, sys
c = ctypes.CDLL(None)
ruleset = c.syscall(444, ctypes.byref(ctypes.c_uint64(1 << 2)), ctypes.c_size_t(8), 0)
c.prctl(38, 1, 0, 0, 0)
assert ruleset >= 0 and c.syscall(446, ruleset, 0) == 0
open(sys.argv[1])
`

// What a session is refused does not fill the kernel's audit log, which others
// read. Neither does what its programs refuse themselves. Without a sandbox that
// is logged.
func TestSessionsAreSilentInTheKernelsLog(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, "python3")
	s := newScene(t)
	first, last, refused := s.OutsidePath("first"), s.OutsidePath("last"), s.OutsidePath("refused")
	inside := s.ProjectPath("inside")
	for _, name := range []string{first, last, refused, inside} {
		harness.Write(t, name, "content\n")
	}
	log, err := openLog(t)
	if err != nil {
		harness.Skip(t, "audit_log", err.Error())
	}
	outside := func(name string) {
		out, err := exec.Command("python3", "-c", confinesItself, name).CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("PermissionError")) {
			t.Fatalf("control: %v: %s", err, out)
		}
	}
	outside(first)
	if _, err := readUntil(log, first); errors.Is(err, os.ErrDeadlineExceeded) {
		harness.Skip(t, "audit_log", "audit is off: "+err.Error())
	} else if err != nil {
		t.Fatal(err)
	}
	e := s.start(harness.Settings(nil), nil)
	for _, argv := range [][]string{
		{"cat", refused},
		{s.Victim, "open-often", refused, "1"},
		{"python3", "-c", confinesItself, inside},
	} {
		if session, status, _ := e.tool(argv...); status == 0 {
			t.Errorf("%s is not refused\n%s", argv, session.Output())
		}
	}
	outside(last)
	lines, err := readUntil(log, last)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{refused, inside} {
		if strings.Contains(lines, name) {
			t.Errorf("%s is logged: %s", name, lines)
		}
	}
}

// openLog reads the kernel's log from now on.
func openLog(t *testing.T) (fd int, err error) {
	t.Helper()
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return -1, fmt.Errorf("open the kernel's log: %w", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	timeout := unix.NsecToTimeval(int64(logTimeout))
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1})
	}
	if err != nil {
		return -1, fmt.Errorf("read the kernel's log: %w", err)
	}
	return fd, nil
}

const logTimeout = 10 * time.Second

// readUntil returns the lines of the log before the first one with a path. The
// error is os.ErrDeadlineExceeded if there is none in time.
func readUntil(log int, path string) (lines string, err error) {
	var all bytes.Buffer
	line := make([]byte, 16<<10)
	for end := time.Now().Add(logTimeout); time.Now().Before(end); {
		n, _, err := unix.Recvfrom(log, line, 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return "", fmt.Errorf("nothing is logged: %w", os.ErrDeadlineExceeded)
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return "", fmt.Errorf("read the kernel's log: %w", err)
		case bytes.Contains(line[:n], []byte("path="+strconv.Quote(path))):
			return all.String(), nil
		}
		all.Write(line[:n])
	}
	return "", fmt.Errorf("%q is not logged: %w: %s", path, os.ErrDeadlineExceeded, all.Bytes())
}
