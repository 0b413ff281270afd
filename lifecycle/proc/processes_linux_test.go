package proc

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	rest := " 34816 9 4194304 0 0 0 0 1 2 3 4 20 0 1 0 987654321 4096 1"
	for name, test := range map[string]struct {
		stat string
		want Entry
		ok   bool
	}{
		"ordinary":             {"7 (sh) S 1 7 5" + rest, Entry{ID{7, 987654321}, 1, 5, false, false, true}, true},
		"that cannot be woken": {"7 (sh) D 1 7 5" + rest, Entry{ID{7, 987654321}, 1, 5, false, false, false}, true},
		"stopped":              {"7 (sh) T 1 7 5" + rest, Entry{ID{7, 987654321}, 1, 5, false, true, false}, true},
		"blanks in the name":   {"7 (a b) Z 1 7 6" + rest, Entry{ID{7, 987654321}, 1, 6, true, false, false}, true},
		"parentheses in it": {
			"7 (x) R 9 9 9 ) S 1 7 8" + rest,
			Entry{ID{7, 987654321}, 1, 8, false, false, true},
			true,
		},
		"first thread ended": {
			"7 (sh) Z 1 7 5" + strings.Replace(rest, " 20 0 1 0 ", " 20 0 3 0 ", 1),
			Entry{ID{7, 987654321}, 1, 5, false, false, false},
			true,
		},
		"newline in it":        {"7 (x\n) X 2 7 9" + rest, Entry{ID{7, 987654321}, 2, 9, true, false, false}, true},
		"too short":            {"7 (sh) S 1 7 5 0", Entry{}, false},
		"no name":              {"7 sh S 1 7 5" + rest, Entry{}, false},
		"empty":                {"", Entry{}, false},
		"session not a number": {"7 (sh) S 1 7 x" + rest, Entry{}, false},
	} {
		got, ok := parseStat([]byte(test.stat))
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%s: %+v %t", name, got, ok)
		}
	}
}

func TestTable_ListsThisProcess(t *testing.T) {
	t.Parallel()
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range table {
		if entry.PID == os.Getpid() {
			if again, err := Find(entry.PID); err != nil || again.Birth != entry.Birth ||
				entry.Parent != os.Getppid() ||
				entry.Dead {
				t.Errorf("%+v, then %+v: %v", entry, again, err)
			}
			return
		}
	}
	t.Error("this process is not in the table")
}

func TestKill_SparesAnotherProcessWithTheNumber(t *testing.T) {
	t.Parallel()
	command := proctest.Helper("wait")
	pid := proctest.StartReady(command)[0]
	entry, err := Find(pid)
	if err != nil {
		t.Fatal(err)
	}
	earlier := entry.ID
	earlier.Birth--
	if err := Kill(earlier); !errors.Is(err, unix.ESRCH) || !proctest.Running(pid) {
		t.Errorf("killing one with the number that started earlier: %v, and it runs: %t", err, proctest.Running(pid))
	}
	if err := Kill(entry.ID); err != nil {
		t.Error(err)
	}
	err = command.Wait()
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended with %v", err)
	}
	if err := Kill(entry.ID); !errors.Is(err, unix.ESRCH) {
		t.Errorf("killing one that is gone: %v", err)
	}
}
