package spawn

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// What was refused while no session ran is told to the next one, up to a number, and
// what is beyond that is counted. It takes no place of what happened to protected
// paths.
func TestGroup_CountsWhatItCannotTell(t *testing.T) {
	t.Parallel()
	for name, beyond := range map[string]int{"as many as are kept": 0, "more": 7} {
		p := &policy.Policy{Restricted: true, Project: t.TempDir()}
		g := &Group{spawner: &Spawner{}, running: &running{
			denials: newDenialQueue(maxDenials), log: slog.New(slog.DiscardHandler),
		}}
		for i := range maxUntold + beyond {
			d := platform.Denial{Access: platform.RefusedRead, Target: fmt.Sprintf("/file%d", i), Count: 1}
			(&running{shared: g, log: g.running.log}).denied(d)
		}
		(*groupObserver)(g).Alarm(Alarm{Path: "/alarm"})
		m := &member{running: &running{policy: p}, call: &call{}}
		if err := g.join(m); err != nil {
			t.Fatal(err)
		}
		if list, _ := m.running.denials.all(); len(list) != 0 {
			t.Errorf("%s: %d are reported before the start", name, len(list))
		}
		g.tellWaiting(m)
		list, missed := m.running.denials.all()
		if len(list) != maxUntold || missed != beyond {
			t.Errorf("%s: %d are told and %d counted, want %d and %d", name, len(list), missed, maxUntold, beyond)
		}
		if alarms := m.running.protection.alarms; len(alarms) != 1 {
			t.Errorf("%s: alarms: %+v", name, alarms)
		}
		if g.waiting.more[audit.Refused] != 0 || len(g.waiting.untold) != 0 {
			t.Errorf("%s: the session after that is told again: %+v", name, g.waiting)
		}
	}
}

// Denials that only an audit trail has are counted there beyond the same number.
func TestWaiting_CountsWhatATrailMisses(t *testing.T) {
	t.Parallel()
	var w waiting
	denial := func(i int) platform.Denial {
		return platform.Denial{Access: platform.RefusedRead, Target: fmt.Sprintf("/file%d", i), Count: 1}
	}
	for i := range maxUntold + 7 {
		w.note(denial(i))
	}
	w.note(denial(0)) // it is known
	if len(w.unnoted) != maxUntold || w.unread != 7 {
		t.Errorf("%d wait and %d are counted", len(w.unnoted), w.unread)
	}
}

// leaveProcess starts a program in a session of its own, which leaves a process, and
// returns both process ids. The leader of the session has ended by then.
func leaveProcess(t *testing.T) (session, pid int) {
	t.Helper()
	open, closed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	leader := exec.Command("sh", "-c", "cat <&3 >/dev/null & echo $!")
	leader.ExtraFiles = []*os.File{open}
	leader.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := leader.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed.Close() }) // it ends the process
	open.Close()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Wait(); err != nil {
		t.Fatal(err)
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	return leader.Process.Pid, pid
}

// What an earlier session has left is not taken for the command that starts, whose
// process id is not known yet.
func TestMemberOf_WhatASessionHasLeftIsNotTheNextOnes(t *testing.T) {
	t.Parallel()
	session, pid := leaveProcess(t)
	starts := &member{running: &running{}, call: &call{}}
	g := &Group{members: []*member{starts}}
	if m, own := g.memberOf(pid); m != starts || !own {
		t.Error("control: an unknown process is not taken for the command that starts")
	}
	g.left.add(session, nil)
	if m, own := g.memberOf(pid); m != starts || own {
		t.Errorf("a process that an earlier session has left: own is %v", own)
	}
	g.left.remove(session)
	if _, own := g.memberOf(pid); !own {
		t.Error("the number is still known after another command has got it")
	}
}

// Sessions without a process are forgotten once there are many.
func TestLeftovers_AreBounded(t *testing.T) {
	t.Parallel()
	var l leftovers
	asked := 0
	alive := func() (map[int]bool, error) { asked++; return map[int]bool{1: true}, nil }
	for session := range 20 * minLeftovers {
		l.add(session, alive)
	}
	if !l.has(1) || l.has(2) || len(l.sessions) > 2*minLeftovers {
		t.Errorf("%d sessions are known", len(l.sessions))
	}
	if asked == 0 || asked > 20 {
		t.Errorf("the processes were looked at %d times", asked)
	}
	failing := func() (map[int]bool, error) { asked++; return nil, errors.New("no /proc") }
	for session := range 20 * minLeftovers {
		l.add(session, failing)
	}
	if !l.has(2) {
		t.Error("a session is forgotten although nothing says that it has no process")
	}
}
