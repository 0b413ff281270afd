//go:build linux

package shells

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// shared is a link's command in the sandbox that the commands of this process share.
func (w *world) shared(line string) *exec.Cmd {
	command := w.command(w.link("bash"), "-c", line)
	command.Env = append(command.Env, fmt.Sprintf("SANDBOX_GROUP_OWNER=%d", os.Getpid()))
	return command
}

// plain is the same command without a sandbox.
func (w *world) plain(line string) *exec.Cmd { return w.command("/bin/bash", "-c", line) }

// aPipe is a pipe whose other end a command gets.
func aPipe(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, theirs, err := os.Pipe()
	harness.Must(t, err)
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

// aSocket is what Node.js gives a command in the place of a pipe.
func aSocket(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	harness.Must(t, err)
	harness.Must(t, unix.SetNonblock(pair[0], true))
	ours, theirs = os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

// hasEnded reports whether nobody writes to a pipe or socket any more.
func hasEnded(t *testing.T, file *os.File) bool {
	t.Helper()
	raw, err := file.SyscallConn()
	harness.Must(t, err)
	ended := false
	harness.Must(t, raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, 0)
		ended = err == nil && fds[0].Revents&unix.POLLHUP != 0
	}))
	return ended
}

// prints has a process in the background print for as long as that works, and notes
// that in a file. It has printed once before the command ends.
const prints = `{ while echo x && echo x >&2; do echo x >>printed; read -t 0.01 <>"$PWD/never"; done; } & ` +
	`echo $! >printer; until test -s printed; do :; done; `

// A command that leaves a process in the background, which has its output open, is
// over for its caller once it has ended, and nothing of what it has printed is lost.
// That process goes on, and can print. Without a sandbox the caller would wait.
func TestTogether_ABackgroundProcessHoldsUpNoCaller(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for name, pair := range map[string]func(*testing.T) (ours, theirs *os.File){"pipe": aPipe, "socket": aSocket} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, harness.Defaults(nil))
			harness.Must(t, unix.Mkfifo(w.ProjectPath("never"), 0o600))
			start := func(command *exec.Cmd) (printer int) {
				t.Helper()
				out, theirs := pair(t)
				complaint, theirErrors := pair(t)
				command.Stdout, command.Stderr = theirs, theirErrors
				harness.Must(t, command.Start())
				theirs.Close()
				theirErrors.Close()
				var read strings.Builder
				copied := goCopy(&read, out)
				drained := goCopy(io.Discard, complaint)
				err := command.Wait()
				printer = pidOf(t, strings.TrimSpace(harness.Read(t, w.ProjectPath("printer"))))
				t.Cleanup(func() { _ = unix.Kill(printer, unix.SIGKILL) })
				if command.ProcessState.ExitCode() != 7 {
					t.Errorf("it ends by %v", err)
				}
				if command.Path == "/bin/bash" {
					if hasEnded(t, out) || hasEnded(t, complaint) {
						t.Error("control: without a sandbox nothing holds the output open")
					}
					harness.Must(t, unix.Kill(printer, unix.SIGKILL))
				}
				<-copied
				<-drained
				if !strings.Contains(read.String(), "all of it\n") {
					t.Errorf("it has printed %q", read.String())
				}
				return printer
			}
			const line = prints + "echo all of it; exit 7"
			start(w.plain(line))
			harness.Must(t, os.Remove(w.ProjectPath("printed")))
			printer := start(w.shared(line))
			before := len(harness.Read(t, w.ProjectPath("printed")))
			harness.Eventually(t, "the process in the background still prints", func() bool {
				return len(harness.Read(t, w.ProjectPath("printed"))) > before+64 // more than one that fails would
			})
			if !harness.Alive(printer) {
				t.Error("the process in the background has ended")
			}
		})
	}
}

// goCopy copies to the end.
func goCopy(to io.Writer, from io.Reader) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(to, from)
	}()
	return done
}

// Every byte of a command arrives, in its order, also if more is printed than fits
// into a pipe and a process in the background goes on to hold that.
func TestTogether_EveryByteArrives(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	const much = "sleep 1000 & head -c 3000000 /dev/zero | tr '\\0' x; printf end"
	const mixed = "for i in {1..300}; do echo out$i; echo err$i >&2; done"
	for name, run := range map[string]func(string) *exec.Cmd{"plain": w.plain, "shared": w.shared} {
		command := run(much)
		ours, theirs := aPipe(t)
		command.Stdout = theirs
		harness.Must(t, command.Start())
		theirs.Close()
		got := make([]byte, 3000003)
		if n, err := io.ReadFull(ours, got); err != nil || !strings.HasSuffix(string(got), "xend") {
			t.Errorf("%s: %d bytes, %v, and in the end %q", name, n, err, got[max(0, n-4):n])
		}
		harness.Must(t, command.Wait())
		if name == "plain" {
			ours.Close() // its background process holds it
		} else if rest, err := io.ReadAll(ours); err != nil || len(rest) > 0 {
			t.Errorf("%s: then %q, %v", name, rest, err)
		}
		out, err := run(mixed).CombinedOutput()
		var want strings.Builder
		for i := range 300 {
			fmt.Fprintf(&want, "out%d\nerr%d\n", i+1, i+1)
		}
		if err != nil || string(out) != want.String() {
			t.Errorf("%s: %v: in another order: %q", name, err, out)
		}
	}
	for _, pid := range harness.Find("sleep\x001000\x00") {
		if dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && dir == w.Project {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// looks waits until nobody reads its output, prints nothing meanwhile, and ends
// with 5.
const looks = `echo on; exec python3 -c 'import select, sys
poll = select.poll(); poll.register(1, 0); poll.poll(); sys.exit(5)'`

// A command whose reader ends is told so as it is without a sandbox: by SIGPIPE if
// it writes, by an event if it looks.
func TestTogether_AReaderThatEnds(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	for line, want := range map[string]string{
		"exec yes": "signal: broken pipe", looks: "exit status 5",
		"trap '' PIPE; echo on; until ! echo on 2>/dev/null; do :; done; exit 6": "exit status 6",
	} {
		for name, run := range map[string]func(string) *exec.Cmd{"plain": w.plain, "shared": w.shared} {
			command := run(line)
			ours, theirs := aPipe(t)
			command.Stdout = theirs
			harness.Must(t, command.Start())
			theirs.Close()
			if _, err := bufio.NewReader(ours).ReadString('\n'); err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
			}
			ours.Close()
			if err := command.Wait(); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %s: %v, want %s", name, line, err, want)
			}
		}
	}
}

// Files and devices are the command's own, and so is every input: what it does not
// read is left for who reads next.
func TestTogether_FilesArePassedAsTheyAre(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	harness.Must(t, err)
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	harness.Must(t, err)
	defer null.Close()
	_, pipe := aPipe(t)
	for is, output := range map[string]*os.File{"-f": file, "-c": null, "-p": pipe} {
		command := w.shared("test " + is + " /proc/self/fd/1")
		command.Stdout = output
		if err := command.Run(); err != nil {
			t.Errorf("test %s: %v", is, err)
		}
	}
	command := w.shared("echo to the file; sleep 1000 & echo $! >left")
	command.Stdout = file
	harness.Must(t, command.Run())
	_ = unix.Kill(pidOf(t, strings.TrimSpace(harness.Read(t, w.ProjectPath("left")))), unix.SIGKILL)
	if got := harness.Read(t, file.Name()); got != "to the file\n" {
		t.Errorf("the file has %q", got)
	}
	input, writer := aPipe(t)
	_, err = writer.WriteString("first\nsecond\n")
	harness.Must(t, errors.Join(err, writer.Close()))
	for _, want := range []string{"first", "second"} {
		command := w.shared("read line; echo $line")
		command.Stdin = input
		if out, err := command.Output(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%v: %q, want %q", err, out, want)
		}
	}
}

// No process that a link starts keeps a descriptor of the link's caller: the other
// end finds out when the command has ended. A process without a sandbox would keep
// it.
func TestTogether_NothingKeepsTheCallersDescriptors(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	for name, c := range map[string]struct {
		command *exec.Cmd
		ends    bool
	}{
		"shared": {w.shared("sleep 1000 >/dev/null 2>&1 & echo $! >left"), true},
		"plain":  {w.plain("sleep 1000 >/dev/null 2>&1 & echo $! >left"), false},
	} {
		ours, theirs := aPipe(t)
		c.command.ExtraFiles = []*os.File{theirs}
		harness.Must(t, c.command.Run())
		theirs.Close()
		left := pidOf(t, strings.TrimSpace(harness.Read(t, w.ProjectPath("left"))))
		t.Cleanup(func() { _ = unix.Kill(left, unix.SIGKILL) })
		if !harness.Alive(left) {
			t.Errorf("%s: nothing is left", name)
		}
		if ended := hasEnded(t, ours); ended != c.ends {
			t.Errorf("%s: the other end has ended: %v", name, ended)
		}
	}
}
