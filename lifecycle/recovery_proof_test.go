//go:build unix

package lifecycle

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/session"
)

// What a journal names by a number is ended only if the number is proved to
// have the same meaning as when it was written. Each case has processes of its
// own. The first case of each kind is the control, in which everything is
// right.
func TestSweep_NeverEndsAnotherProcessByItsNumber(t *testing.T) {
	t.Parallel()
	right := journal.Here()
	if right.Boot == "" {
		t.Fatal("this start of the machine is not known")
	}
	otherBoot, otherNamespace, otherInit := right, right, right
	otherBoot.Boot = "00000000-0000-4000-8000-000000000000"
	otherNamespace.PIDNamespace = "pid:[1]"
	otherInit.Init = "987654321"
	unknown := journal.Origin{}
	type scene struct {
		name   string
		origin *journal.Origin
		forge  func(led session.Session) session.Session
		leader bool // the leader lives
		dies   bool
	}
	same := func(led session.Session) session.Session { return led }
	scenes := []scene{
		{"leader, all right", &right, same, true, true},
		{"leader, another boot", &otherBoot, same, true, false},
		{"leader, another process id namespace", &otherNamespace, same, true, false},
		{"leader, another process 1", &otherInit, same, true, false},
		{"leader, no origin known", &unknown, same, true, false},
		{"leader, a journal of an older version", nil, same, true, false},
		{"leader, another start time", &right, func(led session.Session) session.Session {
			led.Start = "1"
			return led
		}, true, false},
		{"leader gone, another boot", &otherBoot, same, false, false},
		{"leader gone, another process id namespace", &otherNamespace, same, false, false},
		{"leader gone, a journal of an older version", nil, same, false, false},
		{"leader gone, ancestry unknown", &right, func(led session.Session) session.Session {
			led.Autogroup = ""
			return led
		}, false, false},
	}
	if proc.AutogroupID(os.Getpid()) != "" {
		scenes = append(scenes,
			scene{"leader gone, all right", &right, same, false, true},
			scene{"leader gone, another ancestry", &right, func(led session.Session) session.Session {
				led.Autogroup = "/autogroup-1000000000"
				return led
			}, false, false},
		)
	}
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir, group := proctest.StateDir(t), &sessionGroup{}
			var others []int
			if s.leader {
				others = proctest.StartIn(t, group.Start, proctest.Helper("tree", "2"))
			} else {
				process, gate, output, err := proctest.Start(group.Start, proctest.Helper("leave"))
				if err != nil {
					t.Fatal(err)
				}
				gate.Close()
				others = proctest.ReadReady(output)
				output.Close()
				if _, err := process.Wait(false); err != nil || len(others) != 1 {
					t.Fatalf("the leader has left %v, %v", others, err)
				}
			}
			t.Cleanup(func() {
				for _, pid := range others {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			})
			path := proctest.Forge(t, dir, journal.Record{Origin: s.origin}, s.forge(group.session).Record())
			err := Sweep(proctest.Soon(t), dir)
			if proctest.Exist(path) {
				t.Error("the journal is left")
			}
			if s.dies {
				if proctest.MustBeGone(t, others); err != nil {
					t.Error(err)
				}
				return
			}
			proctest.MustRun(t, others, err)
			mayBeOurs := s.origin == nil || s.origin == &unknown || s.origin == &otherNamespace ||
				s.origin == &otherInit || s.name == "leader gone, ancestry unknown"
			if says := err != nil && strings.Contains(err.Error(), "left alone"); says != mayBeOurs {
				t.Errorf("the sweep reports %v", err)
			}
		})
	}
}
