package lifetime

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// hops bounds the chain in number, so that a test that fails leaves nothing behind for long: each hop takes ten milliseconds.
const hops = 2000

// hopper forks its successor into a session of its own and exits at once.
const hopper = `#!/bin/sh
# TOKEN
[ "$1" -gt 0 ] || exit 0
sleep 0.01
setsid "$0" $(($1 - 1)) "$2" &
`

// brood starts the seven and says so when they run. Each sleep is exec'ed under a name that holds the token.
const brood = `#!/bin/bash
token=$1
lie() { exec -a "lie-$token-$1" sleep 300; }
lie plain &
nohup bash -c "exec -a lie-$token-nohup sleep 300" >/dev/null 2>&1 &
setsid bash -c "exec -a lie-$token-setsid sleep 300" &
(setsid bash -c "(exec -a lie-$token-daemon sleep 300) & exit" &)
(trap '' HUP INT QUIT TERM USR1 USR2 TSTP; lie deaf) &
bash -c "kill -STOP \$\$; exec -a lie-$token-stopped sleep 300" stopped-$token &
"$2" ` + "HOPS" + ` "hop-$token" &
echo "brood is out"
sleep 300
`

// litter is a brood in a session.
type litter struct {
	token   string
	session *harness.Session
}

// release starts a brood in a new session of the given kind.
func release(t *testing.T, e *harness.Editor, kind protocol.Kind) *litter {
	t.Helper()
	token := uuid.NewString()
	dir := e.World.Project
	hop := filepath.Join(dir, "hop-"+token)
	write(t, hop, strings.ReplaceAll(hopper, "TOKEN", token))
	start := filepath.Join(dir, "brood-"+token)
	write(t, start, strings.ReplaceAll(brood, "HOPS", strconv.Itoa(hops)))
	l := &litter{token: token}
	l.session = e.Spawn(protocol.SpawnParams{Kind: kind, Command: start, Args: []string{token, hop}})
	l.session.Await("brood is out")
	for _, name := range []string{"plain", "nohup", "setsid", "daemon", "deaf"} {
		harness.Eventually(t, name+" runs", func() bool { return len(find("lie-"+token+"-"+name)) == 1 })
	}
	harness.Eventually(t, "one is stopped", func() bool { return len(find("stopped-"+token)) == 1 && stopped(find("stopped-" + token)[0]) })
	harness.Eventually(t, "the chain hops", func() bool { return len(find("hop-"+token)) > 0 })
	return l
}

func write(t *testing.T, path, script string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}

// alive lists the processes of the brood, and of the script that started it.
func (l *litter) alive() []int { return find(l.token) }

// dead waits until none is left, for long enough that a chain would have shown itself again.
func (l *litter) dead(t *testing.T) {
	t.Helper()
	harness.Eventually(t, "the brood is dead", func() bool { return len(l.alive()) == 0 })
	for range 20 {
		if left := l.alive(); len(left) > 0 {
			t.Fatalf("%d processes of the brood are alive again", len(left))
		}
	}
}

// find lists the living processes with the text in their command lines.
func find(text string) []int {
	entries, _ := os.ReadDir("/proc")
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), text) && harness.Alive(pid) {
			found = append(found, pid)
		}
	}
	return found
}

func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") T ")
}
