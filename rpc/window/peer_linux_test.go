package window

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// roleVariable makes this program another one: a process with one more filter
// than the test, as those of sessions have.
const roleVariable = "TEST_WINDOW_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role, os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func play(role, path string) error {
	if role == "dial, filtered" || role == "listen, filtered" {
		if err := filter(); err != nil {
			return err
		}
	}
	switch role {
	case "dial", "dial, filtered":
		c, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		got, _ := io.ReadAll(io.LimitReader(c, 10))
		fmt.Printf("%d bytes\n", len(got))
	default:
		listener, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		if err := os.Chmod(path, 0o600); err != nil {
			return err
		}
		fmt.Println("listens")
		for {
			c, err := listener.Accept()
			if err != nil {
				return err
			}
			fmt.Fprintln(c, `{"hello":{"version":1,"asks":true}}`)
		}
	}
	return nil
}

// filter installs a filter on every thread that allows everything.
func filter() error {
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	program := unix.SockFprog{Len: 1, Filter: &allow}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

func actor(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	command := exec.Command("/proc/self/exe", path)
	command.Env = append(os.Environ(), roleVariable+"="+role)
	return command
}

// Processes of sessions have more filters than those outside.
func TestProcessesOfSessionsAreRefused(t *testing.T) {
	t.Parallel()
	stateDir, dir := place(t, "")
	s := serve(t, stateDir, dir)
	for role, want := range map[string]string{"dial": "10 bytes\n", "dial, filtered": "0 bytes\n"} {
		if out, err := actor(t, role, s.Path).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: %v: %q, want %q", role, err, out, want)
		}
	}
	for role, want := range map[string]bool{"listen": true, "listen, filtered": false} {
		stateDir, dir := place(t, "")
		command := actor(t, role, filepath.Join(dir, "window"))
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if line, _ := bufio.NewReader(out).ReadString('\n'); line != "listens\n" {
			t.Fatalf("%s: %q", role, line)
		}
		if got := dialFor(stateDir, filepath.Join(dir, "window"), timeout).Open(); got != want {
			t.Errorf("%s: open: %v, want %v", role, got, want)
		}
		_ = command.Process.Kill()
		_ = command.Wait()
	}
}

// The state directory may lie deeper than the address of a socket can tell.
func TestLongPath(t *testing.T) {
	t.Parallel()
	converse(t, strings.Repeat("deep/", 30))
}
