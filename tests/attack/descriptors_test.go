//go:build linux

package attack

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Uses descriptors that the editor leaks into the sidecar: a file with a
// secret, and an open directory outside. The stage marks everything above
// stderr close-on-exec, so none arrives. The control is a program that the same
// parent starts the same way.
func TestDescriptorsLeakedToTheSidecarDoNotArrive(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	secretOutside(s)
	leak := func(command *exec.Cmd) {
		for _, path := range []string{s.OutsidePath("secret"), s.Outside} {
			file, err := os.Open(path)
			harness.Must(t, err)
			t.Cleanup(func() { file.Close() })
			command.ExtraFiles = append(command.ExtraFiles, file)
		}
	}
	plain := exec.Command(s.Victim, "descriptors", "then", "read-fd", "3")
	leak(plain)
	output, err := plain.Output()
	if err != nil || bytes.Count(output, []byte("descriptor ")) < 2 || !bytes.Contains(output, []byte(secretText)) {
		t.Fatalf("control: a program that is started plainly must get the descriptors: %v\n%s", err, output)
	}
	for name, settings := range map[string]string{"sandboxed": harness.Settings(nil), "not sandboxed": harness.Off()} {
		e := harness.Start(t, s.World, harness.Options{Settings: settings, Wrap: leak})
		result := s.attempt(e, "descriptors")
		if !result.done() || strings.Contains(result.output, "descriptor ") {
			harness.Breach(t, "%s: the session has descriptors above stderr: status %d\n%s", name, result.status, result.output)
		}
	}
}

// Searches a terminal and a tool for descriptors of the sidecar: its pipes to
// the editor, the handshake, the terminal's master. Other sessions run
// meanwhile. A session has three.
func TestASessionHasThreeDescriptors(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.Start("")
	for range 3 {
		e.Shell().Await(`[#$] `)
	}
	if result := s.attempt(e, "descriptors"); !result.done() || strings.Contains(result.output, "descriptor ") {
		harness.Breach(t, "a tool has more: status %d\n%s", result.status, result.output)
	}
	shell := e.Shell()
	shell.Type("'" + s.Victim + "' descriptors; echo stat''us $?\n")
	shell.Await(`status 0`)
	if strings.Contains(shell.Output(), "descriptor ") {
		harness.Breach(t, "a terminal has more:\n%s", shell.Output())
	}
}

// Uses descriptors that the caller of exec leaves to it, each of which does
// more than the session may. The control is the same program without exec.
func TestDescriptorsLeftToExecDoNotArrive(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	secretOutside(s)
	harness.Write(t, s.UserSettings(), harness.Settings(harness.Sandbox{
		"additional_read_only_paths": []string{s.OutsidePath("readable")},
	}))
	harness.Write(t, s.OutsidePath("readable"), "x")
	harness.Write(t, s.ProjectPath("linked"), "x")
	agent, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.OutsidePath("agent")})
	harness.Must(t, err)
	t.Cleanup(func() { agent.Close() })
	master, terminal, err := pty.Open()
	harness.Must(t, err)
	t.Cleanup(func() { master.Close(); terminal.Close() })
	made := func(fd int, err error) *os.File {
		harness.Must(t, err)
		file := os.NewFile(uintptr(fd), "left to exec")
		t.Cleanup(func() { file.Close() })
		return file
	}
	open := func(path string, flags int) *os.File { return made(unix.Open(path, flags|unix.O_CLOEXEC, 0)) }
	listening, err := agent.File()
	harness.Must(t, err)
	t.Cleanup(func() { listening.Close() })
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	harness.Must(t, err)
	made(pair[1], nil)
	network := made(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
	harness.Write(t, s.ProjectPath("deleted"), "x")
	deleted := open(s.ProjectPath("deleted"), unix.O_RDWR)
	harness.Must(t, os.Remove(s.ProjectPath("deleted")))
	// The path of this one is granted, and another file by now.
	harness.Write(t, s.OutsidePath("moved"), secretText)
	harness.Must(t, os.Rename(s.OutsidePath("moved"), s.ProjectPath("moved")))
	moved := open(s.ProjectPath("moved"), unix.O_RDONLY)
	harness.Must(t, os.Rename(s.ProjectPath("moved"), s.OutsidePath("moved")))
	harness.Write(t, s.ProjectPath("moved"), "x")
	harness.Must(t, os.Symlink(s.OutsidePath("secret"), s.ProjectPath("link")))
	for name, leak := range map[string]struct {
		file *os.File
		said string
	}{
		"a directory outside":           {open(s.Outside, unix.O_RDONLY), s.Outside},
		"the project's directory":       {open(s.Project, unix.O_RDONLY), s.Project},
		"the root":                      {open("/", unix.O_RDONLY|unix.O_PATH), "/"},
		"a secret":                      {open(s.OutsidePath("secret"), unix.O_RDONLY), "secret"},
		"a secret's path":               {open(s.OutsidePath("secret"), unix.O_PATH), "secret"},
		"a secret to append to":         {open(s.OutsidePath("secret"), unix.O_WRONLY|unix.O_APPEND), "secret"},
		"a readable file to write":      {open(s.OutsidePath("readable"), unix.O_RDWR), "readable"},
		"a protected file to write":     {open(s.UserSettings(), unix.O_RDWR), filepath.Base(s.UserSettings())},
		"memory of the caller":          {open("/proc/self/mem", unix.O_RDWR), "mem"},
		"maps of the caller":            {open("/proc/self/maps", unix.O_RDONLY), "maps"},
		"its mount namespace":           {open("/proc/self/ns/mnt", unix.O_RDONLY), "mnt:"},
		"a file of /sys":                {open("/sys/kernel/uevent_seqnum", unix.O_RDONLY), "uevent"},
		"the master of a terminal":      {master, "ptmx"},
		"another terminal":              {terminal, "/dev/pts/"},
		"a socket that listens":         {listening, "a socket"},
		"a pair of sockets":             {made(pair[0], nil), "a socket"},
		"a network socket":              {network, "a socket"},
		"memory":                        {made(unix.MemfdCreate("mem", unix.MFD_CLOEXEC)), "memfd:mem"},
		"an eventfd":                    {made(unix.Eventfd(0, unix.EFD_CLOEXEC)), "eventfd"},
		"an epoll":                      {made(unix.EpollCreate1(unix.EPOLL_CLOEXEC)), "eventpoll"},
		"a timer":                       {made(unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)), "timerfd"},
		"an inotify":                    {made(unix.InotifyInit1(unix.IN_CLOEXEC)), "inotify"},
		"the caller as a descriptor":    {made(unix.PidfdOpen(os.Getpid(), 0)), "pidfd"},
		"a file that was deleted":       {deleted, "deleted"},
		"a file of another name by now": {moved, "moved"},
		"a file behind a granted name":  {open(s.ProjectPath("link"), unix.O_RDONLY), "secret"},
	} {
		run := func(argv ...string) (string, string) {
			command := exec.Command(argv[0], argv[1:]...)
			command.Dir, command.Env = s.Project, harness.Environ(s.World)
			for range 7 - 3 {
				command.ExtraFiles = append(command.ExtraFiles, nil)
			}
			command.ExtraFiles = append(command.ExtraFiles, leak.file)
			var said strings.Builder
			command.Stderr = &said
			out, err := command.Output()
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, said.String())
			}
			return string(out), said.String()
		}
		if out, _ := run(s.Victim, "descriptors"); !strings.Contains(out, "descriptor 7 ") {
			t.Fatalf("control: %s must arrive without exec: %s", name, out)
		}
		out, said := run(harness.Binary(t), "exec", "--", s.Victim, "descriptors")
		if strings.Contains(out, "descriptor 7 ") {
			harness.Breach(t, "%s arrives: %s", name, out)
		}
		text := strings.Join(strings.Fields(said), " ")
		if !strings.Contains(text, "descriptors closed") || !strings.Contains(text, "7 (") ||
			!strings.Contains(text, leak.said) {
			t.Errorf("%s: not named: %q", name, said)
		}
	}
}

// Leaves descriptors to exec that share their inode with a standard stream, and
// lead elsewhere. The control is the same program without exec, and a copy of a
// terminal that is a stream.
func TestDescriptorsLeftToExecAreNotTakenForStreams(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.UserSettings(), harness.Settings(nil))
	opened := func(fd int, err error) *os.File {
		harness.Must(t, err)
		file := os.NewFile(uintptr(fd), "left to exec")
		t.Cleanup(func() { file.Close() })
		return file
	}
	var masters, terminals [2]*os.File
	for i := range masters {
		var err error
		masters[i], terminals[i], err = pty.Open()
		harness.Must(t, err)
		t.Cleanup(func() { masters[i].Close(); terminals[i].Close() })
	}
	event := opened(unix.Eventfd(0, unix.EFD_CLOEXEC))
	for name, left := range map[string]struct {
		stream, file *os.File
		arrives      bool
	}{
		"another event":    {event, opened(unix.Eventfd(0, unix.EFD_CLOEXEC)), false},
		"an inotify":       {event, opened(unix.InotifyInit1(unix.IN_CLOEXEC)), false},
		"another master":   {masters[0], masters[1], false},
		"another terminal": {terminals[0], terminals[1], false},
		"a copy":           {terminals[0], terminals[0], true},
	} {
		for _, prefix := range [][]string{nil, {harness.Binary(t), "exec", "--"}} {
			argv := append(prefix, s.Victim, "descriptors")
			command := exec.Command(argv[0], argv[1:]...)
			command.Dir, command.Env, command.Stdin = s.Project, harness.Environ(s.World), left.stream
			command.ExtraFiles = []*os.File{nil, nil, nil, nil, left.file}
			out, err := command.Output()
			if err != nil {
				t.Fatalf("%s: %q: %v", name, prefix, err)
			}
			arrives := strings.Contains(string(out), "descriptor 7 ")
			switch {
			case prefix != nil && arrives && !left.arrives:
				harness.Breach(t, "%s arrives: %s", name, out)
			case !arrives && (prefix == nil || left.arrives):
				t.Errorf("control: %s, %q: does not arrive: %s", name, prefix, out)
			}
		}
	}
}

// A protected file that may be read is left to exec. Its descriptor was opened
// where the file can be written, and /proc would open it again there.
func TestADescriptorLeftToExecOpensNothingAgain(t *testing.T) {
	t.Parallel()
	harness.Require(t, "file_tree")
	for protected, path := range map[bool]string{true: ".envrc", false: "free"} {
		s := newScene(t)
		harness.Write(t, s.UserSettings(), harness.Settings(nil))
		harness.Write(t, s.ProjectPath(path), "as it was")
		file, err := os.Open(s.ProjectPath(path))
		harness.Must(t, err)
		t.Cleanup(func() { file.Close() })
		_, err = file.Seek(3, io.SeekStart)
		harness.Must(t, err)
		command := exec.Command(harness.Binary(t), "exec", "--", "/bin/sh", "-c",
			`cat <&3; (echo changed >/proc/self/fd/3) 2>/dev/null; (chmod 0777 /proc/self/fd/3) 2>/dev/null`)
		command.Dir, command.Env, command.ExtraFiles = s.Project, harness.Environ(s.World), []*os.File{file}
		out, _ := command.Output()
		if string(out) != "it was" {
			t.Errorf("%s: %q is read", path, out)
		}
		info, err := os.Stat(s.ProjectPath(path))
		harness.Must(t, err)
		found := fmt.Sprintf("%s %v", harness.Read(t, s.ProjectPath(path)), info.Mode().Perm() == 0o777)
		switch {
		case protected && found != "as it was false":
			harness.Breach(t, "%s was changed: %s", path, found)
		case !protected && found != "changed\n true":
			t.Errorf("control: %s must be changed: %s", path, found)
		}
	}
}

// A device that everybody uses is a stream of exec, or left to it. Its descriptor
// was opened where root can change its mode, which is the whole machine's. The
// device here is one of the test's own.
func TestTheModeOfADeviceLeftToExecStays(t *testing.T) {
	t.Parallel()
	harness.Require(t, "file_tree")
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "an ordinary user has no device whose mode he can change")
	}
	const null, zero, mode = 3, 5, 0o666
	for _, minor := range []uint32{null, zero} {
		for fd, open := range []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_WRONLY | unix.O_APPEND, unix.O_RDWR} {
			for _, sandboxed := range []bool{true, false} {
				s := newScene(t)
				harness.Write(t, s.UserSettings(), harness.Settings(nil))
				path := s.OutsidePath("device")
				harness.Must(t, unix.Mknod(path, unix.S_IFCHR|mode, int(unix.Mkdev(1, minor))))
				harness.Must(t, os.Chmod(path, mode))
				file, err := os.OpenFile(path, open, 0)
				harness.Must(t, err)
				t.Cleanup(func() { file.Close() })
				argv := []string{"/bin/sh", "-c", fmt.Sprintf(
					`test -c /proc/self/fd/%d && test ! /proc/self/fd/%[1]d -ef /dev/null && chmod 0640 /proc/self/fd/%[1]d; %s`,
					fd, []string{"head -c 1", "echo x", "echo x >&2", "echo x >&3"}[fd])}
				if sandboxed {
					argv = append([]string{harness.Binary(t), "exec", "--"}, argv...)
				}
				command := exec.Command(argv[0], argv[1:]...)
				command.Dir, command.Env = s.Project, harness.Environ(s.World)
				var said bytes.Buffer
				command.Stderr = &said
				switch fd {
				case 0:
					command.Stdin = file
				case 1:
					command.Stdout = file
				case 2:
					command.Stderr = file
				case 3:
					command.ExtraFiles = []*os.File{file}
				}
				if err := command.Run(); err != nil {
					t.Errorf("descriptor %d: it cannot be used: %v: %s", fd, err, said.String())
				}
				info, err := os.Stat(path)
				harness.Must(t, err)
				switch stays := info.Mode().Perm() == mode; {
				case sandboxed && !stays:
					harness.Breach(t, "descriptor %d, device %d: the mode is %v", fd, minor, info.Mode())
				case !sandboxed && stays:
					t.Errorf("control: descriptor %d: the mode must change", fd)
				}
			}
		}
	}
}
