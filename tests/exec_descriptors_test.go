//go:build linux

package tests

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// listing prints which of some numbers are descriptors that the program was
// started with: where each leads, its flags and its offset.
const listing = `
import fcntl, os, sys
for fd in map(int, sys.argv[1].split()):
    try:
        if fcntl.fcntl(fd, fcntl.F_GETFD): continue
    except OSError: continue
    try: offset = os.lseek(fd, 0, os.SEEK_CUR)
    except OSError as e: offset = e.errno
    print(fd, os.readlink(f"/proc/self/fd/{fd}"), oct(fcntl.fcntl(fd, fcntl.F_GETFL)), offset)
`

// numbers are those that shells use, that the stage uses itself, and the ends.
var numbers = []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 62, 63, 64, 254, 255, 1023}

// TestExec_DescriptorsArriveAsWithoutIt leaves every kind of descriptor that
// may pass to a program, at every number. In a turn each is at four of them.
func TestExec_DescriptorsArriveAsWithoutIt(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "python3")
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	files := granted(t, w)
	if len(files) > len(numbers) {
		t.Fatalf("%d kinds, %d numbers", len(files), len(numbers))
	}
	harness.WithAndWithoutCgroups(t, func(t *testing.T, wrap func(*exec.Cmd)) {
		for turn := range numbers {
			if !harness.Turn(t, turn, len(numbers)/4) {
				continue
			}
			var passed []*os.File
			for i, file := range files {
				passed = at(passed, numbers[(i+turn)%len(numbers)], file)
			}
			found := map[string]string{}
			for way, r := range waysIn(t, w) {
				command := r.command("/usr/bin/python3", "-c", listing, strings.Trim(fmt.Sprint(numbers), "[]"))
				command.ExtraFiles = passed
				var said strings.Builder
				command.Stderr = &said
				wrap(command)
				out, err := command.Output()
				if err != nil || said.Len() > 0 {
					t.Fatalf("%s: %v\n%s", way, err, said.String())
				}
				found[way] = string(out)
			}
			if lines := strings.Count(found["directly"], "\n"); lines != len(files) {
				t.Fatalf("control: %d descriptors of %d arrive\n%s", lines, len(files), found["directly"])
			}
			if found["by exec"] != found["directly"] {
				t.Errorf("by exec:\n%s\ndirectly:\n%s", found["by exec"], found["directly"])
			}
		}
	})
}

// TestExec_HoldsNoDescriptorThatIsTooHigh leaves pipes to a program that cannot
// have them. Whoever reads them finds their end while the program runs, and they
// take nothing from few descriptors.
func TestExec_HoldsNoDescriptorThatIsTooHigh(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	for _, left := range []struct {
		first, count, limit int
	}{{1024, 1, 2048}, {3, 56, 64}} {
		reader, writer, err := os.Pipe()
		harness.Must(t, err)
		t.Cleanup(func() { reader.Close(); writer.Close() })
		// The limit of descriptors is the shell's to set.
		command := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, left.limit), "sh",
			harness.Binary(t), "exec", "--", "sh", "-c", "echo runs; read line")
		command.Dir, command.Env = w.Project, harness.Environ(w)
		for i := range left.count {
			command.ExtraFiles = at(command.ExtraFiles, left.first+i, writer)
		}
		stdin, err := command.StdinPipe()
		harness.Must(t, err)
		stdout, err := command.StdoutPipe()
		harness.Must(t, err)
		var said strings.Builder
		command.Stderr = &said
		harness.Must(t, command.Start())
		writer.Close()
		line := make([]byte, len("runs\n"))
		if _, err := io.ReadFull(stdout, line); err != nil {
			_ = command.Wait()
			t.Fatalf("%+v: the program does not run: %v\n%s", left, err, said.String())
		}
		ended := make(chan struct{})
		go func() {
			_, _ = reader.Read(line)
			close(ended)
		}()
		if !deadline.New(10 * time.Second).Wait(ended) {
			t.Errorf("%+v: the pipe is held while the program runs", left)
		}
		harness.Must(t, stdin.Close())
		_ = command.Wait() // read(1) has found the end of its input
		if !strings.Contains(said.String(), "(too high)") {
			t.Errorf("%+v: control: the descriptors are not too high: %s", left, said.String())
		}
	}
}

// at puts a file at a number of a program's descriptors.
func at(files []*os.File, number int, file *os.File) []*os.File {
	for len(files) <= number-3 {
		files = append(files, nil)
	}
	files[number-3] = file
	return files
}

// granted opens one descriptor of each kind that a session may have.
func granted(t *testing.T, w *harness.World) (files []*os.File) {
	t.Helper()
	add := func(file *os.File, err error) {
		t.Helper()
		harness.Must(t, err)
		t.Cleanup(func() { file.Close() })
		files = append(files, file)
	}
	open := func(path string, flags int) {
		t.Helper()
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		add(os.NewFile(uintptr(fd), path), err)
	}
	reader, writer, err := os.Pipe()
	add(reader, err)
	add(writer, err)
	file, fifo := filepath.Join(w.Project, "a file (deleted)"), filepath.Join(w.Project, "fifo")
	harness.Write(t, file, "content")
	harness.Must(t, unix.Mkfifo(fifo, 0o600))
	open(fifo, unix.O_RDONLY|unix.O_NONBLOCK)
	open(fifo, unix.O_WRONLY|unix.O_NONBLOCK)
	open(fifo, unix.O_RDWR)
	open(file, unix.O_RDONLY)
	open(file, unix.O_WRONLY)
	open(file, unix.O_WRONLY|unix.O_APPEND)
	open(file, unix.O_RDWR|unix.O_SYNC)
	_, err = files[len(files)-1].Seek(3, io.SeekStart)
	harness.Must(t, err)
	open("/etc/os-release", unix.O_RDONLY)
	_, err = files[len(files)-1].Seek(5, io.SeekStart)
	harness.Must(t, err)
	open(os.DevNull, unix.O_WRONLY)
	open("/dev/zero", unix.O_RDONLY)
	open("/dev/urandom", unix.O_RDWR)
	return files
}

// TestExec_TerminalArrives leaves the program its terminal above the standard
// streams, which are files. Another one, and what controls one, do not arrive.
func TestExec_TerminalArrives(t *testing.T) {
	t.Parallel()
	master, other, err := pty.Open()
	harness.Must(t, err)
	t.Cleanup(func() { master.Close(); other.Close() })
	for way, r := range ways(t) {
		program := r.command("/bin/sh", "-c",
			`for n in 3 4 5; do (echo mine >&$n) && echo $n arrives >&3; done; echo over >&3`)
		outer := exec.Command("bash", append([]string{
			"-c", `exec 3<>/dev/tty </dev/null >/dev/null 2>&1; "$@"`, "bash",
		},
			program.Args...)...)
		outer.Dir, outer.Env = program.Dir, program.Env
		outer.ExtraFiles = []*os.File{nil, master, other}
		p := harness.StartTerminal(t, outer)
		p.Await("over")
		screen := p.Screen.String()
		others := strings.Contains(screen, "4 arrives") && strings.Contains(screen, "5 arrives")
		if others != (r.prefix == nil) {
			t.Errorf("%s: other terminals arrive: %v\n%s", way, others, screen)
		}
		if !strings.Contains(screen, "mine") || !strings.Contains(screen, "3 arrives") {
			t.Errorf("%s: the terminal does not arrive\n%s", way, screen)
		}
	}
}

// TestExec_DescriptorsOfShells runs what people write in shells, where RUN is
// the way to run a command.
func TestExec_DescriptorsOfShells(t *testing.T) {
	t.Parallel()
	harness.RequirePrograms(t, "make")
	for name, script := range map[string]string{
		"substitution":        `RUN diff <(echo a; echo b) <(echo a; echo c)`,
		"output substitution": `RUN sh -c 'echo out >"$1"' sh >(sed s/out/through/) | cat`,
		"swapped streams":     `(RUN sh -c 'echo out; echo err >&2' 3>&1 1>&2 2>&3) 2>/dev/null`,
		"a copy of output":    `RUN sh -c 'echo copy >&3' 3>&1`,
		"a copy of input":     `echo text | RUN sh -c 'cat <&3' 3<&0`,
		"a shared offset":     `printf '%s\n' 1 2 3 >lines; exec 3<lines; RUN sh -c 'read a <&3; echo $a'; read b <&3; echo $b`,
		"append":              `echo 1 >log; exec 9>>log; RUN sh -c 'echo 2 >&9'; echo 3 >&9; cat log`,
		"a closed descriptor": `exec 3<&-; RUN sh -c 'cat <&3' 2>/dev/null || echo none`,
		"make": `printf 'all:\n\t+@RUN $(MAKE) -f inner\n' >outer; printf 'all: a b\na b:\n\t@echo made\n' >inner
			make -j2 -f outer`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := map[string]string{}
			for way, r := range ways(t) {
				harness.Write(t, r.world.UserSettings(), harness.Defaults(harness.Sandbox{
					"allowed_env_vars": []string{"+MAKEFLAGS", "+MAKELEVEL"}, // they name make's pipe
				}))
				line := strings.ReplaceAll(script, "RUN", strings.Join(r.prefix, " "))
				command := exec.Command("bash", "-c", line)
				command.Dir, command.Env = r.world.Project, harness.Environ(r.world)
				out, err := command.Output()
				found[way] = fmt.Sprintf("%v\n%s", err, strings.ReplaceAll(string(out), r.world.Project, ""))
			}
			if found["by exec"] != found["directly"] {
				t.Errorf("by exec: %s\ndirectly: %s", found["by exec"], found["directly"])
			}
		})
	}
}

// A standard stream that is a file outside of the grants can be opened again by
// its name in /proc and /dev, and no further than the descriptor goes.
func TestExec_StreamsCanBeOpenedAgain(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	in, out := filepath.Join(w.Outside, "in"), filepath.Join(w.Outside, "out")
	harness.Write(t, in, "given\n")
	for _, test := range []struct{ script, stdout, inside string }{
		{`cat /dev/stdin && echo more >>/dev/stdout`, "given\nmore\n", "given\nmore\n"},
		{`cat /proc/self/fd/0; echo said >/dev/stderr`, "given\n", "given\n"},
		{`echo x >>/proc/self/fd/0; echo $?`, "0\n", "2\n"},
		{`head -c 1 /proc/self/fd/1; echo $?`, "0\n", "1\n"},
		{`cat <"$IN"; echo $?`, "given\n0\n", "given\n0\n"},
		{`cat "$IN.other" >/dev/null; echo $?`, "0\n", "1\n"},
		{`echo x >"$IN.other"; echo $?`, "0\n", "2\n"},
	} {
		for way, r := range waysIn(t, w) {
			harness.Write(t, in, "given\n")
			harness.Write(t, in+".other", "")
			harness.Write(t, out, "")
			command := r.command("/bin/sh", "-c", strings.ReplaceAll(test.script, "$IN", in))
			stdin, err := os.Open(in)
			harness.Must(t, err)
			stdout, err := os.OpenFile(out, os.O_WRONLY|os.O_APPEND, 0)
			harness.Must(t, err)
			stderr, err := os.OpenFile(out+".err", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			harness.Must(t, err)
			command.Stdin, command.Stdout, command.Stderr = stdin, stdout, stderr
			_ = command.Run() // the output says what happened
			for _, file := range []*os.File{stdin, stdout, stderr} {
				harness.Must(t, file.Close())
			}
			want := test.stdout
			if way != "directly" {
				want = test.inside
			}
			if got := harness.Read(t, out); got != want {
				t.Errorf("%s, %s: %q, want %q\n%s", test.script, way, got, want, harness.Read(t, out+".err"))
			}
		}
	}
}
