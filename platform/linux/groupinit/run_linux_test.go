package groupinit

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == handshake.GroupInit {
		os.Exit(Run())
	}
	os.Exit(m.Run())
}

// scene is a running init, and this process as its sidecar.
type scene struct {
	t       *testing.T
	fd      int
	init    *exec.Cmd
	reports *json.Decoder
}

func start(t *testing.T) *scene {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	s := &scene{t: t, fd: fds[0], init: exec.Command("/proc/self/exe", handshake.GroupInit)}
	s.init.Stdin = theirs
	if err := s.init.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	s.reports = json.NewDecoder(ours)
	t.Cleanup(func() {
		ours.Close()
		if err := s.init.Wait(); err != nil {
			t.Errorf("the init ends with its socket by: %v", err)
		}
	})
	return s
}

// call sends a call with three descriptors, and returns the first report.
func (s *scene) call(id int, line, dir string, files ...int) handshake.CallReport {
	s.t.Helper()
	message, err := json.Marshal(handshake.Call{
		ID: id, Program: "sh", Argv: handshake.RawStrings([]string{"sh", "-c", line}),
		Env: handshake.RawStrings([]string{"PATH=/usr/bin:/bin"}), Dir: handshake.RawString(dir),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := unix.Sendmsg(s.fd, message, unix.UnixRights(files...), nil, 0); err != nil {
		s.t.Fatal(err)
	}
	return s.report()
}

func (s *scene) report() (report handshake.CallReport) {
	s.t.Helper()
	if err := s.reports.Decode(&report); err != nil {
		s.t.Fatal(err)
	}
	return report
}

// streams are /dev/null and both ends of a pipe.
func streams(t *testing.T) (null, reader, writer *os.File) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if reader, writer, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		null.Close()
		reader.Close()
		writer.Close()
	})
	return null, reader, writer
}

// A command gets its directory, three descriptors and no more, and a session of
// its own. Its status is the kernel's.
func TestRun_StartsAndReports(t *testing.T) {
	t.Parallel()
	s := start(t)
	null, reader, writer := streams(t)
	dir := t.TempDir()
	const line = `pwd; ls /proc/self/fd | wc -l; test $(cut -d" " -f6 /proc/$$/stat) = $$ && echo leads; exit 7`
	report := s.call(1, line, dir, int(null.Fd()), int(writer.Fd()), int(writer.Fd()))
	if report.ID != 1 || report.Started == 0 {
		t.Fatalf("the report is %+v", report)
	}
	writer.Close()
	ended := s.report()
	if ended.ID != 1 || ended.Ended == nil || syscall.WaitStatus(*ended.Ended).ExitStatus() != 7 || !ended.Alone {
		t.Errorf("the end is %+v", ended)
	}
	out, err := io.ReadAll(reader)
	// The fourth descriptor is of the directory that ls reads.
	if want := dir + "\n4\nleads\n"; string(out) != want || err != nil {
		t.Errorf("it printed %q, %v; want %q", out, err, want)
	}
}

// The init says which step has failed, and starts the next command all the same.
// It is not alone while something runs in the background.
func TestRun_ReportsFailures(t *testing.T) {
	t.Parallel()
	s := start(t)
	null, _, writer := streams(t)
	fd := int(null.Fd())
	directory, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()
	for _, test := range []struct {
		dir  string
		in   int
		step handshake.Step
		want string
	}{
		{"/nonexistent", fd, handshake.StepDirectory, "no such file"},
		{"/", int(directory.Fd()), handshake.StepStreams, "standard input is a directory"},
	} {
		report := s.call(1, "true", test.dir, test.in, fd, fd)
		if f := report.Failure; f == nil || f.Step != test.step || !strings.Contains(f.Cause, test.want) {
			t.Errorf("the report is %+v, want %s: %s", f, test.step, test.want)
		}
	}
	started := s.call(2, "sleep 1000 & true", "/", fd, fd, int(writer.Fd()))
	if ended := s.report(); ended.ID != 2 || ended.Ended == nil || ended.Alone {
		t.Errorf("the end is %+v", ended)
	}
	_ = unix.Kill(-started.Started, unix.SIGKILL)
	if last := s.report(); last.ID != 0 || !last.Alone {
		t.Errorf("after the last process the report is %+v", last)
	}
}

// Standard streams that would lead out of a sandbox are refused.
func TestCheck(t *testing.T) {
	t.Parallel()
	null, reader, writer := streams(t)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	network, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	path, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(path)
	fine := int(null.Fd())
	for _, test := range []struct {
		files []int
		want  string
	}{
		{[]int{fine, int(writer.Fd()), int(reader.Fd())}, ""},
		{[]int{pair[0], fine, fine}, ""},
		{[]int{fine, fine}, "2 descriptors"},
		{[]int{fine, path, fine}, "standard output is a directory"},
		{[]int{fine, fine, int(network.Fd())}, "standard error is a network socket"},
	} {
		err := check(test.files)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.files, err, test.want)
		}
	}
}
