package lifecycle

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	rest := " 34816 9 4194304 0 0 0 0 1 2 3 4 20 0 1 0 987654321 4096 1"
	for name, test := range map[string]struct {
		stat string
		want processEntry
		ok   bool
	}{
		"ordinary":           {"7 (sh) S 1 7 5" + rest, processEntry{processID{7, 987654321}, 1, 5, false, false}, true},
		"stopped":            {"7 (sh) T 1 7 5" + rest, processEntry{processID{7, 987654321}, 1, 5, false, true}, true},
		"blanks in the name": {"7 (a b) Z 1 7 6" + rest, processEntry{processID{7, 987654321}, 1, 6, true, false}, true},
		"parentheses in it": {"7 (x) R 9 9 9 ) S 1 7 8" + rest, processEntry{processID{7, 987654321}, 1, 8, false, false},
			true},
		"first thread ended": {"7 (sh) Z 1 7 5" + strings.Replace(rest, " 20 0 1 0 ", " 20 0 3 0 ", 1),
			processEntry{processID{7, 987654321}, 1, 5, false, false}, true},
		"newline in it":        {"7 (x\n) X 2 7 9" + rest, processEntry{processID{7, 987654321}, 2, 9, true, false}, true},
		"too short":            {"7 (sh) S 1 7 5 0", processEntry{}, false},
		"no name":              {"7 sh S 1 7 5" + rest, processEntry{}, false},
		"empty":                {"", processEntry{}, false},
		"session not a number": {"7 (sh) S 1 7 x" + rest, processEntry{}, false},
	} {
		got, ok := parseStat([]byte(test.stat))
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%s: %+v %t", name, got, ok)
		}
	}
}

func TestProcessTable_HoldsThisProcess(t *testing.T) {
	t.Parallel()
	table, err := processTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range table {
		if entry.pid == os.Getpid() {
			if again, err := findProcess(entry.pid); err != nil || again.birth != entry.birth || entry.parent != os.Getppid() ||
				entry.dead {
				t.Errorf("%+v, then %+v: %v", entry, again, err)
			}
			return
		}
	}
	t.Error("this process is not in the table")
}

func TestKillExactly_SparesAnotherProcessWithTheNumber(t *testing.T) {
	t.Parallel()
	command := helper("wait")
	pid := startReady(command)[0]
	entry, err := findProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	earlier := entry.processID
	earlier.birth--
	if err := killExactly(earlier); !errors.Is(err, unix.ESRCH) || !running(pid) {
		t.Errorf("killing one with the number that started earlier: %v, and it runs: %t", err, running(pid))
	}
	if err := killExactly(entry.processID); err != nil {
		t.Error(err)
	}
	err = command.Wait()
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended with %v", err)
	}
	if err := killExactly(entry.processID); !errors.Is(err, unix.ESRCH) {
		t.Errorf("killing one that is gone: %v", err)
	}
}

// A process whose first thread has ended looks like a zombie.
func TestSessionGroup_KillsAProcessWithoutItsFirstThread(t *testing.T) {
	t.Parallel()
	group := newSessionGroup()
	pids := startIn(t, group, helper("headless"))
	if killed, err := group.Kill(soon(t)); killed != 1 || err != nil {
		t.Errorf("killed %d: %v", killed, err)
	}
	mustBeGone(t, pids)
}
