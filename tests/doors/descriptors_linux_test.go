package doors

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// ways are further ways to a session, which differ from the doors in what starts
// the command.
var ways = []door{
	{name: "editor's group", run: func(s *scene, line string) string {
		return s.serve(protocol.SpawnParams{Kind: protocol.Tool, Command: line, Group: "agent"})
	}},
	{name: "`exec --join`", run: (*scene).join},
	{name: "`agent`", run: (*scene).agent},
}

// join joins a sandbox of an editor that was started without any descriptor.
func (s *scene) join(line string) (said string) {
	e := harness.Start(s.t, s.World, harness.Options{Settings: harness.Read(s.t, s.UserSettings())})
	e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "true", Group: "agent"}).Exit()
	return s.command("exec", "--join", "agent", "--", "sh", "-c", line)
}

// agent runs an agent that is a shell.
func (s *scene) agent(line string) (said string) {
	program := s.HomePath("bin/claude")
	harness.Write(s.t, program, "#!/bin/sh\nexec /bin/sh \"$@\"\n")
	harness.Must(s.t, os.Chmod(program, 0o755))
	return s.command("agent", "--program", program, "claude", "-c", line)
}

const (
	inSecret, inSocket = "the secret", "from the socket"
	// leftOpen is how many a caller leaves open, from 3 on.
	leftOpen = 7
)

// descriptors opens what a caller leaves open: a file with a secret, to be read
// and to be written, its directory, a socket that is connected, and one that
// listens.
func (s *scene) descriptors() (files []*os.File) {
	s.t.Helper()
	add := func(file *os.File, err error) {
		s.t.Helper()
		harness.Must(s.t, err)
		s.t.Cleanup(func() { file.Close() })
		files = append(files, file)
	}
	open := func(path string, flags int) {
		s.t.Helper()
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		add(os.NewFile(uintptr(fd), path), err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	harness.Must(s.t, err)
	other := os.NewFile(uintptr(pair[1]), "the other end")
	s.t.Cleanup(func() { other.Close() })
	_, err = other.WriteString(inSocket + "\n")
	harness.Must(s.t, err)
	harness.Must(s.t, unix.Shutdown(pair[1], unix.SHUT_WR)) // or its reader would wait for more
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(harness.ShortDir(s.t), "socket")})
	harness.Must(s.t, err)
	s.t.Cleanup(func() { listener.Close() })

	secret := s.OutsidePath("secret")
	harness.Write(s.t, secret, inSecret+"\n")
	open(secret, unix.O_RDONLY)
	open(s.Outside, unix.O_RDONLY|unix.O_DIRECTORY)
	add(os.NewFile(uintptr(pair[0]), "a socket"), nil)
	open(secret, unix.O_RDWR)
	add(listener.File())
	open(secret, unix.O_WRONLY|unix.O_APPEND)
	open(secret, unix.O_PATH)
	return files
}

// haul is what a command has got of its caller's descriptors.
type haul struct {
	found   int    // descriptors
	read    string // through them
	written bool   // to the file with the secret
}

// nothing reports whether a command has got nothing, and all whether it has got
// everything.
func (h haul) nothing() bool { return h == haul{} }

func (h haul) all() bool {
	return h.found == leftOpen && strings.Contains(h.read, inSecret) && strings.Contains(h.read, inSocket) && h.written
}

// takes has a command list its descriptors, and read and write through them: by
// their numbers, and by their names in /proc. Its caller leaves some open.
func (s *scene) takes(run func(line string) (said string)) haul {
	s.t.Helper()
	found, read := s.ProjectPath("found"), s.ProjectPath("read")
	for _, path := range []string{found, read} {
		harness.Must(s.t, os.RemoveAll(path))
	}
	s.left = s.descriptors()
	if len(s.left) != leftOpen {
		s.t.Fatalf("%d descriptors are left, not %d", len(s.left), leftOpen)
	}
	said := run(fmt.Sprintf(`%s descriptors >%s && echo searched >>%[2]s
for n in 3 4 5 6 7 8 9; do cat <&$n; cat </proc/self/fd/$n; cat /proc/self/fd/$n/secret; echo planted >&$n; done \
	>%[3]s 2>/dev/null`, harness.Quote(s.ProjectPath("victim")), harness.Quote(found), harness.Quote(read)))
	text := harness.Read(s.t, found)
	if !strings.HasSuffix(text, "searched\n") {
		s.t.Fatalf("control: the command has not searched: %q\n%s", text, said)
	}
	return haul{
		found: strings.Count(text, "descriptor "), read: harness.Read(s.t, read),
		written: harness.Read(s.t, s.OutsidePath("secret")) != inSecret+"\n",
	}
}

// keepToOneself keeps from children what whoever started the tests has left open.
func keepToOneself(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	harness.Must(t, err)
	for _, entry := range entries {
		number, err := strconv.Atoi(entry.Name())
		harness.Must(t, err)
		if number > 2 {
			unix.CloseOnExec(number)
		}
	}
}

// The caller of each front door has left open what the session could not open
// itself. None of it reaches the session. Without a sandbox, only exec passes all
// of it, as docs/design/exec.md says. The control is the same caller, which starts
// the same command itself. Each door has its turn with a sandbox or without.
func TestDoors_PassNoDescriptorThatTheCallerLeavesOpen(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	keepToOneself(t)
	for i, sandboxed := range []bool{true, false} {
		list := doors
		if sandboxed {
			list = slices.Concat(doors, ways)
		}
		for j, d := range list {
			if j < len(doors) && !harness.Turn(t, i+j, 2) {
				continue
			}
			t.Run(fmt.Sprintf("%s, sandboxed: %t", d.name, sandboxed), func(t *testing.T) {
				t.Parallel()
				s := newScene(t, situation{extra: harness.Sandbox{"enabled": sandboxed}})
				harness.Victim(t, "tests/victim", s.ProjectPath("victim"))
				control := s.takes(func(line string) string { return s.ends(s.start("/bin/sh", "-c", line)) })
				if !control.all() {
					t.Fatalf("control: without a door it gets %+v", control)
				}
				got := s.takes(func(line string) string { return d.run(s, line) })
				switch {
				case !sandboxed && d.name == "`exec`":
					if !got.all() {
						t.Errorf("it gets %+v", got)
					}
				case !got.nothing():
					harness.Breach(t, "it gets %+v", got)
				}
			})
		}
	}
}
