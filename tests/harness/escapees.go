package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

// chainLength bounds the chain, so that a failed test leaves nothing behind for
// long: each process of it takes ten milliseconds.
const chainLength = 2000

// forkChain forks its successor into a session of its own and exits at once.
const forkChain = `#!/bin/sh
# TOKEN
[ "$1" -gt 0 ] || exit 0
sleep 0.01
setsid "$0" $(($1 - 1)) "$2" &
`

// startScript starts the seven and prints a line when they run. Each sleep is
// exec'ed under a name that holds the token. SIGUSR1 ends the script with
// status 8.
const startScript = `#!/bin/bash
token=$1
escapee() { exec -a "escapee-$token-$1" sleep 300; }
trap 'exit 8' USR1
escapee plain &
nohup bash -c "exec -a escapee-$token-nohup sleep 300" >/dev/null 2>&1 &
setsid bash -c "exec -a escapee-$token-setsid sleep 300" &
(setsid bash -c "(exec -a escapee-$token-daemon sleep 300) & exit" &)
(trap '' HUP INT QUIT TERM USR1 USR2 TSTP; escapee deaf) &
bash -c "kill -STOP \$\$; exec -a escapee-$token-stopped sleep 300" stopped-$token &
"$2" ` + "LENGTH" + ` "hop-$token" &
echo "all are started"
sleep 300 &
wait $!
`

// Escapees are seven processes of a session that use every known way to
// outlive it. They run in the background, under nohup, in a session of their
// own, behind a double fork, with all signals ignored, stopped, and as an
// endless chain of forks. All carry a token in their command lines, by which
// they are found from outside the sidecar's namespaces too.
type Escapees struct {
	token   string
	Session *Session
}

// StartEscapees starts escapees in a new session of the given kind, and returns
// when all of them run. If the test fails, the rest is killed with it.
func StartEscapees(t *testing.T, e *Editor, kind protocol.Kind) *Escapees {
	t.Helper()
	b, argv := newEscapees(t, e.World.Project)
	b.Session = e.Spawn(protocol.SpawnParams{Kind: kind, Command: argv[0], Args: argv[1:]})
	b.Session.Await("all are started")
	b.await(t)
	return b
}

// StartEscapeesAlone starts escapees in a session that no sidecar knows, and
// returns its leader too.
func StartEscapeesAlone(t *testing.T, dir string) (*Escapees, *exec.Cmd) {
	t.Helper()
	b, argv := newEscapees(t, dir)
	command := exec.Command(argv[0], argv[1:]...)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	b.await(t)
	return b, command
}

// newEscapees makes escapees that are not started yet, and the command line
// that starts them.
func newEscapees(t *testing.T, dir string) (*Escapees, []string) {
	t.Helper()
	Procfs(t)
	b := &Escapees{token: uuid.NewString()}
	hop := filepath.Join(dir, "hop-"+b.token)
	script(t, hop, strings.ReplaceAll(forkChain, "TOKEN", b.token))
	start := filepath.Join(dir, "start-"+b.token)
	script(t, start, strings.ReplaceAll(startScript, "LENGTH", strconv.Itoa(chainLength)))
	t.Cleanup(func() {
		_ = os.Remove(hop) // a chain may be faster than one scan
		Within(func() bool {
			alive := b.Alive()
			for _, pid := range alive {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			return len(alive) == 0
		})
	})
	return b, []string{start, b.token, hop}
}

// await waits until all escapees run, each under the name that it takes last.
// Before that, a hang-up would still end it.
func (b *Escapees) await(t *testing.T) {
	t.Helper()
	for _, name := range []string{"plain", "nohup", "setsid", "daemon", "deaf"} {
		Eventually(t, name+" runs", func() bool {
			return len(find(func(line string) bool {
				return strings.HasPrefix(line, "escapee-"+b.token+"-"+name+"\x00")
			})) == 1
		})
	}
	Eventually(t, "one is stopped", func() bool {
		found := Find("stopped-" + b.token)
		return len(found) == 1 && stopped(found[0])
	})
	Eventually(t, "the chain chainLength", func() bool { return len(Find("hop-"+b.token)) > 0 })
}

// script writes a program that any user may run.
func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// Alive lists the living escapees, and the script that started them.
func (b *Escapees) Alive() []int { return Find(b.token) }

// AwaitDead waits until none is left, and returns when the last was gone. A
// scan of all processes is not atomic: it can miss each process of a chain. So
// several scans in a row must find none.
func (b *Escapees) AwaitDead(t *testing.T) time.Time {
	t.Helper()
	const looks = 20
	var gone time.Time
	MustEnd(t, fmt.Sprintf("the escapees are dead, at %d looks in a row", looks), func() bool {
		gone = time.Now()
		for range looks {
			if len(b.Alive()) > 0 {
				return false
			}
		}
		return true
	})
	return gone
}

// AwaitPromisedDeath waits until all is dead that the session's reply promises:
// all escapees if it gives a guarantee, otherwise those that have not left the
// terminal's session. It returns when the last of them was gone.
func (b *Escapees) AwaitPromisedDeath(t *testing.T) time.Time {
	t.Helper()
	if b.Session.Tracking.Guarantee {
		return b.AwaitDead(t)
	}
	return b.AwaitSessionDead(t)
}

// AwaitSessionDead waits until every process that has not left the terminal's
// session is dead, and returns when the last of them was gone.
func (b *Escapees) AwaitSessionDead(t *testing.T) time.Time {
	t.Helper()
	for _, name := range []string{
		"escapee-" + b.token + "-plain", "escapee-" + b.token + "-nohup", "escapee-" +
			b.token + "-deaf",
		"stopped-" + b.token,
	} {
		MustEnd(t, name+" is dead", func() bool { return len(Find(name)) == 0 })
	}
	return time.Now()
}

// Find lists the living processes with the text in their command lines.
func Find(text string) []int {
	return find(func(line string) bool { return strings.Contains(line, text) })
}

// find lists the living processes whose command line satisfies sought. Each
// argument in it ends with NUL.
func find(sought func(line string) bool) []int {
	entries, _ := os.ReadDir("/proc")
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && sought(string(line)) && Alive(pid) {
			found = append(found, pid)
		}
	}
	return found
}
