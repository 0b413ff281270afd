//go:build linux

package lifetime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// answered fails the test if a request was not answered, and returns the code
// of the error; 0 for a result.
func answered(t *testing.T, what string, err error) protocol.Code {
	t.Helper()
	var answer *client.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &answer):
		return answer.Code
	}
	t.Errorf("%s was not answered: %v", what, err)
	return 0
}

// tryClose closes a session and returns the code of the answer.
func tryClose(t *testing.T, e *harness.Editor, id string) protocol.Code {
	t.Helper()
	_, err := harness.Try(e, protocol.Close, protocol.CloseParams{SessionID: id, GraceMs: new(int)})
	return answered(t, "close", err)
}

// slowFile is a program that no process can open: a lease (fcntl(2)) blocks
// every open until the lease is given up, at the latest after
// /proc/sys/fs/lease-break-time. Network file systems have that effect on a
// stage in practice.
type slowFile struct {
	path string
	file *os.File
}

func newSlowFile(t *testing.T, path string) *slowFile {
	t.Helper()
	harness.WriteProgram(t, path, "#!/bin/sh\nexec sleep 300\n")
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	// A child that another test forks holds the descriptor until it execs, and
	// a lease needs the only one.
	harness.Eventually(t, "a lease is given", func() bool {
		_, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			t.Fatalf("take lease: %v", err)
		}
		return err == nil
	})
	return &slowFile{path, file}
}

// awaitVictim waits until a process is blocked, and returns its id. An open that
// does not wait begins to break the lease, too, so only the list of those that
// wait tells.
func (s *slowFile) awaitVictim(t *testing.T) (victim string) {
	t.Helper()
	info, err := s.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	inode := fmt.Sprintf(":%d", info.Sys().(*syscall.Stat_t).Ino)
	harness.Eventually(t, "somebody hangs", func() bool {
		lease := ""
		for line := range strings.Lines(harness.Read(t, "/proc/locks")) { // proc_locks(5)
			switch fields := strings.Fields(line); {
			case len(fields) > 5 && fields[1] == "LEASE" && strings.HasSuffix(fields[5], inode):
				lease = fields[0]
			case len(fields) > 5 && fields[1] == "->" && fields[2] == "LEASE" && fields[0] == lease:
				victim = fields[5]
				return true
			}
		}
		return false
	})
	return victim
}

// killedAtOnce is SIGKILL that perhaps comes before the watchdog runs. No process
// is left then either, and the next sidecar removes the directories.
const killedAtOnce = "SIGKILL at once"

// A stage hangs in the kernel. Whatever ends the session then ends the stage
// too, and every request is answered.
func TestAStageThatHangsCanBeEnded(t *testing.T) {
	t.Parallel()
	places := []string{"look-up", "execution"}
	for i, sandbox := range sandboxes {
		for j, where := range places {
			for k, how := range []string{"close", "shutdown", "end of stdin", "SIGTERM", "SIGKILL", killedAtOnce} {
				// In its turn, each end has one sandbox and place.
				if !harness.Turn(t, i*len(places)+j+k, len(sandboxes)*len(places)) {
					continue
				}
				t.Run(sandbox.name+" "+where+" "+how, func(t *testing.T) {
					t.Parallel()
					w := harness.NewWorld(t)
					e, sidecar := reaped(t, w, sandbox.settings)
					slow := newSlowFile(t, filepath.Join(w.Project, "slow"))
					params := protocol.SpawnParams{
						SessionID: uuid.NewString(), Cwd: w.Project,
						Shell: &protocol.Shell{Program: slow.path},
					}
					if where == "look-up" { // only then the stage opens the file before it has reported
						params.Shell.Program, params.Env = "slow", map[string]string{"PATH": w.Project}
					}
					spawned := make(chan error, 1)
					go func() {
						_, err := harness.Try(e, protocol.Spawn, params)
						spawned <- err
					}()
					if slow.awaitVictim(t) == strconv.Itoa(sidecar) {
						t.Error("the sidecar itself waits for the file")
					}
					switch how {
					case "close":
						var closes sync.WaitGroup
						for range 3 {
							closes.Go(func() {
								if code := tryClose(t, e, params.SessionID); code != protocol.CodeSessionNotFound {
									t.Errorf("close of what never was is answered with code %d", code)
								}
							})
						}
						closes.Wait()
					case "shutdown":
						harness.Call(e, protocol.Shutdown, protocol.Empty{})
					case "SIGTERM":
						kill(t, sidecar, unix.SIGTERM)
					case "SIGKILL":
						// The stage may look the program up before the
						// watchdog runs; see killedAtOnce.
						harness.Eventually(t, "the watchdog runs", func() bool {
							return len(harness.Watchdogs(w)) > 0
						})
						kill(t, sidecar, unix.SIGKILL)
					case killedAtOnce:
						kill(t, sidecar, unix.SIGKILL)
					case "end of stdin":
						mustLeaveNobody(t, e.Client)
					}
					err := <-spawned
					if how == "close" || how == "shutdown" {
						if code := answered(t, "spawn", err); code != protocol.CodeSpawnFailed {
							t.Errorf("the spawn is answered with code %d", code)
						}
					} else if err == nil {
						t.Error("the spawn succeeded")
					}
					if how == "close" {
						if _, status := e.Tool("true"); status != 0 {
							t.Errorf("the next session ends with status %d", status)
						}
					}
					mustLeaveNobody(t, e.Client)
					if how == killedAtOnce {
						e, sidecar = reaped(t, w, sandbox.settings)
						mustLeaveNobody(t, e.Client)
					}
					harness.NoTrace(t, w, sidecar)
				})
			}
		}
	}
}

// Spawns and closes of one session cross. A close that finds no session changes
// nothing. If several find one, only one gets it. Sessions that were not closed
// are in the list.
func TestSpawnAndCloseCross(t *testing.T) {
	t.Parallel()
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	modes := trackingModes(t)
	for i, mode := range modes {
		rounds := roundsOf(t, rounds, i, modes)
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			cross(t, rounds, mode.wrap(t))
		})
	}
}

func cross(t *testing.T, rounds int, wrap func(*exec.Cmd)) {
	t.Helper()
	w := harness.NewWorld(t)
	e, sidecar := reaped(t, w, harness.Defaults(harness.Sandbox{"apply_to": "tool"}), wrap)
	token := fmt.Sprintf("300.%d", uuid.New().ID())
	line := fmt.Sprintf("%ssleep %s & sleep %s", away(e), token, token)
	begun := time.Now()
	for range 5 {
		e.Spawn(protocol.SpawnParams{Command: line}).Close(0)
	}
	usual := time.Since(begun) / 5
	outcomes := map[string]int{}
	for round := range rounds {
		id := uuid.NewString()
		kind := []protocol.Kind{protocol.Tool, protocol.Terminal}[round%2]
		var closed atomic.Int64
		var crossing sync.WaitGroup
		var spawn error
		crossing.Go(func() {
			_, spawn = harness.Try(e, protocol.Spawn,
				protocol.SpawnParams{SessionID: id, Kind: kind, Cwd: w.Project, Command: line})
		})
		for range 3 {
			crossing.Go(func() {
				time.Sleep(2 * usual * time.Duration(round) / time.Duration(rounds)) // to meet the spawn at any point
				switch code := tryClose(t, e, id); code {
				case 0:
					closed.Add(1)
				case protocol.CodeSessionNotFound:
				default:
					t.Errorf("close is answered with code %d", code)
				}
			})
		}
		crossing.Wait()
		code := answered(t, "spawn", spawn)
		outcome := fmt.Sprintf("spawn %d, %d closed", code, closed.Load())
		outcomes[outcome]++
		listed := len(harness.Call(e, protocol.List, protocol.Empty{}).Sessions)
		switch {
		case code == 0 && closed.Load() == 0 && listed == 1:
			if code := tryClose(t, e, id); code != 0 {
				t.Errorf("a session that is in the list: close is answered with code %d", code)
			}
		case code == 0 && closed.Load() == 1 && listed == 0:
		case code == protocol.CodeSpawnFailed && closed.Load() == 0 && listed == 0:
		default:
			t.Errorf("%s, %d in the list", outcome, listed)
		}
		if left := harness.Find(token); len(left) != 0 {
			harness.Breach(t, "%s, %d processes are left", outcome, len(left))
		}
		if code := tryClose(t, e, id); code != protocol.CodeSessionNotFound {
			t.Errorf("a second close is answered with code %d", code)
		}
	}
	t.Logf("%v", outcomes)
	mustLeaveNobody(t, e.Client)
	harness.NoTrace(t, w, sidecar)
}

// A sidecar is shut down with a hundred sessions, and more starting. The answer
// comes when none is left. Where it is not a mode's turn, there are fewer.
func TestShutdownWithAHundredSessions(t *testing.T) {
	t.Parallel()
	modes := trackingModes(t)
	for i, mode := range modes {
		running := roundsOf(t, 100, i, modes)
		t.Run(mode.name, func(t *testing.T) { shutDownMany(t, running, mode.wrap(t)) })
	}
}

func shutDownMany(t *testing.T, running int, wrap func(*exec.Cmd)) {
	t.Helper()
	w := harness.NewWorld(t)
	e, sidecar := reaped(t, w, harness.Defaults(harness.Sandbox{"apply_to": "tool"}), wrap)
	token := fmt.Sprintf("300.%d", uuid.New().ID())
	params := protocol.SpawnParams{
		Cwd:     w.Project,
		Command: fmt.Sprintf("trap '' HUP; %ssleep %s & echo up; sleep %s", away(e), token, token),
	}
	kinds := []protocol.Kind{protocol.Tool, protocol.Terminal}
	const coming = 20
	var spawns sync.WaitGroup
	for i := range running {
		params.Kind = kinds[i%2]
		e.Spawn(params).Await("up")
	}
	var refused atomic.Int64
	for i := range coming {
		params := params
		params.Kind = kinds[i%2]
		spawns.Go(func() {
			_, err := harness.Try(e, protocol.Spawn, params)
			if answered(t, "spawn", err) != 0 {
				refused.Add(1)
			}
		})
	}
	harness.Call(e, protocol.Shutdown, protocol.Empty{})
	left := harness.Find(token)
	spawns.Wait()
	if len(left) != 0 {
		harness.Breach(t, "shutdown was answered with %d processes alive", len(left))
	}
	t.Logf("shut down with %d sessions; %d of %d that came late were refused", running, refused.Load(), coming)
	ctx, cancel := deadline.Context(t.Context(), harness.Timeout)
	defer cancel()
	harness.Notify(e, protocol.Exit, protocol.Empty{})
	select {
	case <-e.Gone():
	case <-ctx.Done():
		t.Error("the sidecar does not end")
	}
	mustLeaveNobody(t, e.Client)
	harness.NoTrace(t, w, sidecar)
}
