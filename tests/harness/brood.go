package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
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

// breeder starts the seven and says so when they run. Each sleep is exec'ed under a name that holds the token.
const breeder = `#!/bin/bash
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

// Brood is seven processes in a session that do what is known to survive elsewhere: background, nohup, a session of its own, a double
// fork, every signal ignored, stopped, and a chain that forks and exits without end. All carry a token in their command lines, by which
// they are found again, also from outside the sidecar's namespaces.
type Brood struct {
	token   string
	Session *Session
}

// Release starts a brood in a new session of the given kind, and returns when all of it runs.
func Release(t *testing.T, e *Editor, kind protocol.Kind) *Brood {
	t.Helper()
	token := uuid.NewString()
	dir := e.World.Project
	hop := filepath.Join(dir, "hop-"+token)
	script(t, hop, strings.ReplaceAll(hopper, "TOKEN", token))
	start := filepath.Join(dir, "brood-"+token)
	script(t, start, strings.ReplaceAll(breeder, "HOPS", strconv.Itoa(hops)))
	b := &Brood{token: token}
	b.Session = e.Spawn(protocol.SpawnParams{Kind: kind, Command: start, Args: []string{token, hop}})
	b.Session.Await("brood is out")
	for _, name := range []string{"plain", "nohup", "setsid", "daemon", "deaf"} {
		Eventually(t, name+" runs", func() bool { return len(Find("lie-"+token+"-"+name)) == 1 })
	}
	Eventually(t, "one is stopped", func() bool { return len(Find("stopped-"+token)) == 1 && stopped(Find("stopped-" + token)[0]) })
	Eventually(t, "the chain hops", func() bool { return len(Find("hop-"+token)) > 0 })
	return b
}

// script writes a program that the sidecar's user may run, whoever that is.
func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// Alive lists the living processes of the brood, and of the script that started it.
func (b *Brood) Alive() []int { return Find(b.token) }

// Dead waits until none is left, and looks often enough that a chain would have shown itself again.
func (b *Brood) Dead(t *testing.T) {
	t.Helper()
	Eventually(t, "the brood is dead", func() bool { return len(b.Alive()) == 0 })
	for range 20 {
		if left := b.Alive(); len(left) > 0 {
			t.Fatalf("%d processes of the brood are alive again", len(left))
		}
	}
}

// Find lists the living processes with the text in their command lines.
func Find(text string) []int {
	entries, _ := os.ReadDir("/proc")
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), text) && Alive(pid) {
			found = append(found, pid)
		}
	}
	return found
}

func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") T ")
}
