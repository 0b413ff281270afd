//go:build linux

package lifetime

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

const python = "/usr/bin/python3"

// traced is a program with a thread that makes its parent its tracer. Once
// dead, the program waits for the tracer to reap it. A line of input ends it
// with status 7.
const traced = `
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
done = threading.Event()
def trace():
    print("ptrace:", libc.ptrace(0, 0, 0, 0), flush=True)
    done.set()
    time.sleep(1000)
threading.Thread(target=trace).start()
done.wait()
input()
os._exit(7)
`

// everyTracee runs a test with each sandbox and each tracking mode. If they take
// turns, each has one of the other.
func everyTracee(t *testing.T, run func(t *testing.T, settings string, wrap func(*exec.Cmd))) {
	t.Helper()
	if _, err := os.Stat(python); err != nil {
		harness.Skip(t, "python3", err.Error())
	}
	modes := []struct {
		name string
		wrap func(*exec.Cmd)
	}{{"as it comes", func(*exec.Cmd) {}}, {"without cgroups", harness.WithoutCgroups(t)}}
	for i, sandbox := range sandboxes {
		for j, mode := range modes {
			if !harness.Turn(t, i+j, len(modes)) {
				continue
			}
			t.Run(sandbox.name+" "+mode.name, func(t *testing.T) {
				t.Parallel()
				if sandbox.name == "sandboxed" {
					harness.Require(t, "filesystem")
				}
				run(t, sandbox.settings, mode.wrap)
			})
		}
	}
}

func TestALeaderWhoseThreadIsTracedCanBeClosed(t *testing.T) {
	t.Parallel()
	everyTracee(t, func(t *testing.T, settings string, wrap func(*exec.Cmd)) {
		e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: settings, Wrap: wrap})
		s := e.Spawn(protocol.SpawnParams{Command: python, Args: []string{"-c", traced}})
		s.Await("ptrace: 0")
		if result := s.Close(0); result.Remaining != 0 || result.Signal == nil || *result.Signal != "SIGKILL" {
			t.Errorf("got %+v", result)
		}
	})
}

func TestALeaderWhoseThreadIsTracedEndsByItself(t *testing.T) {
	t.Parallel()
	everyTracee(t, func(t *testing.T, settings string, wrap func(*exec.Cmd)) {
		e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: settings, Wrap: wrap})
		s := e.Spawn(protocol.SpawnParams{Command: python, Args: []string{"-c", traced}})
		s.Await("ptrace: 0")
		s.Type("\n")
		if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != 7 {
			t.Errorf("got %+v", exit)
		}
	})
}

func TestACommandWhoseThreadIsTracedEnds(t *testing.T) {
	t.Parallel()
	everyTracee(t, func(t *testing.T, settings string, wrap func(*exec.Cmd)) {
		w := harness.NewWorld(t)
		harness.Write(t, w.UserSettings(), settings)
		ctx, cancel := deadline.Context(context.Background(), harness.Timeout)
		defer cancel()
		command := exec.CommandContext(ctx, harness.Binary(t), "exec", "--", python, "-c", traced)
		command.Dir, command.Env = w.Project, harness.Environ(w)
		wrap(command)
		in, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out harness.Buffer
		command.Stdout = &out
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		out.Await(t, "ptrace: 0")
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Error(err)
		}
		_ = command.Wait()
		if status := command.ProcessState.ExitCode(); status != 7 {
			t.Errorf("exit status %d, output %q", status, out.String())
		}
	})
}
