package namespace

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// streamsHelper is set in a process of this test that checks its own standard
// input.
const streamsHelper = "SIDECAR_TEST_STREAMS"

func TestCheckStreams_RefusesSocketsThatTheFilterRefuses(t *testing.T) {
	if kind := os.Getenv(streamsHelper); kind != "" {
		if err := CheckStreams(kind == "offline", kind == "sockets"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	for _, test := range []struct {
		name             string
		stream           *os.File
		offline, sockets int // exit status
	}{
		{"null", null, 0, 0},
		{"stream", pair(t, unix.SOCK_STREAM), 0, 0},
		{"udp", udp(t), 3, 0},
		{"datagram", pair(t, unix.SOCK_DGRAM), 0, 3},
	} {
		for kind, want := range map[string]int{"offline": test.offline, "sockets": test.sockets, "neither": 0} {
			command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
			command.Env = append(os.Environ(), streamsHelper+"="+kind)
			command.Stdin = test.stream
			out, err := command.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := command.ProcessState.ExitCode(); got != want || got != 0 &&
				!strings.Contains(string(out), "standard input is a ") {
				t.Errorf("%s, %s: status %d, want %d: %s", test.name, kind, got, want, out)
			}
		}
	}
}

// pair is one end of a pair of Unix sockets.
func pair(t *testing.T, kind int) *os.File {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	end, other := os.NewFile(uintptr(fds[0]), "pair"), os.NewFile(uintptr(fds[1]), "pair")
	t.Cleanup(func() { end.Close(); other.Close() })
	return end
}

func udp(t *testing.T) *os.File {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	file, err := conn.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}
