//go:build linux

package groups

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// closeAll closes every descriptor, those that the call was given included, and then
// starts a process that stays in the background. That writes its process id to a
// file. The arguments are the file's name, and "leave" for a call that ends then,
// "setsid" for one whose process has a POSIX session besides, or "stay".
const closeAll = `exec /usr/bin/python3 -c '
import os, signal, sys
name, how = sys.argv[1:]
os.closerange(0, 1 << 16)
if os.fork() == 0:
    if how == "setsid": os.setsid()
    with open(name + ".part", "w") as f: f.write(str(os.getpid()))
    os.rename(name + ".part", name)
    signal.pause()
if how == "stay": signal.pause()
os._exit(0)' `

// pidIn waits for a file in the project with a process id.
func pidIn(t *testing.T, w *harness.World, name string) (pid int) {
	t.Helper()
	harness.Eventually(t, "a process writes "+name, func() bool {
		_, err := os.Stat(w.ProjectPath(name))
		return err == nil
	})
	pid, err := strconv.Atoi(harness.Read(t, w.ProjectPath(name)))
	harness.Must(t, err)
	return pid
}

// A call may close all that it has, and leave a process. The next call of the group
// works and reaches that process, and has no descriptor but its three. Closing the
// call ends what it has started, and closing the group leaves nothing.
func TestGroup_ACallMayCloseAllItsDescriptors(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		victim := harness.Quote(victim(t, e))
		init, _ := run(e, "agent", "echo $PPID")
		spawn := func(name, how string, pipe bool) *harness.Session {
			return e.Spawn(protocol.SpawnParams{
				Kind: protocol.Tool, Group: "agent", Pipe: pipe, Command: closeAll + name + " " + how,
			})
		}
		var left []int
		for _, pipe := range []bool{false, true} {
			for _, how := range []string{"leave", "setsid"} {
				name := fmt.Sprintf("%s-%t", how, pipe)
				// A process that leads a session is not known to belong to the call.
				if exit := spawn(name, how, pipe).Exit(); !succeeded(exit) || how == "leave" && exit.Background != 1 {
					t.Errorf("%s: the call ended by %+v", name, exit)
				}
				pid := pidIn(t, e.World, name)
				left = append(left, pid)
				out, exit := run(e, "agent", fmt.Sprintf("kill -0 %d && echo $PPID; exit 3", pid))
				if exit.ExitCode == nil || *exit.ExitCode != 3 || out != init {
					t.Errorf("%s: the next call printed %q, want %q, and ended by %+v", name, out, init, exit)
				}
				if out, exit := run(e, "agent", victim+" descriptors"); out != "" || !succeeded(exit) {
					harness.Breach(t, "%s: the next call has %q, and ended by %+v", name, out, exit)
				}
			}
			name := fmt.Sprintf("stay-%t", pipe)
			s := spawn(name, "stay", pipe)
			pid := pidIn(t, e.World, name)
			if closed := s.Close(0); closed.Killed < 2 || closed.Remaining != 0 ||
				harness.Alive(pid) || harness.Alive(s.PID) {
				harness.Breach(t, "%s: processes %d and %d, closing the call: %+v", name, s.PID, pid, closed)
			}
		}
		if out, _ := run(e, "agent", victim+" descriptors 9</dev/null"); !strings.Contains(out, "descriptor 9 ") {
			t.Errorf("control: a descriptor is not seen: %q", out)
		}
		for _, pid := range left {
			if !harness.Alive(pid) {
				t.Errorf("control: process %d has ended before its group", pid)
			}
		}
		ended := harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
		for _, pid := range left {
			if ended.Remaining != 0 || harness.Alive(pid) {
				harness.Breach(t, "closing the group leaves process %d: %+v", pid, ended)
			}
		}
	})
}
