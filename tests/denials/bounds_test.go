//go:build linux

package denials

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// What would have failed without a sandbox is not the sandbox's to tell, and
// neither is what a program prints.
func TestOtherFailuresAreNotTold(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, value := range []string{"report", "ask"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			otherFailures(t, value)
		})
	}
}

func otherFailures(t *testing.T, onDenied string) {
	t.Helper()
	s := newScene(t)
	closed := filepath.Join(s.Project, "closed")
	harness.Write(t, closed, "content")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	harness.Write(t, s.outside("closed"), "content")
	if err := os.Chmod(s.outside("closed"), 0); err != nil {
		t.Fatal(err)
	}
	e := s.start(harness.Settings(harness.Sandbox{"on_denied": onDenied}), nil)
	observed(t, e)
	as := []string{}
	if os.Geteuid() == 0 { // whom modes do not bind; another user has to get as far as the file
		for dir := s.Outside; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(s.Project, 0o755); err != nil {
			t.Fatal(err)
		}
		as = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	}
	for name, argv := range map[string][]string{
		"no such file":                  {"cat", s.outside("none")},
		"no such directory":             {"touch", s.outside("none/file")},
		"a directory that is there":     {"mkdir", s.Outside},
		"a file's mode":                 append(append([]string{}, as...), "cat", closed),
		"the mode of one outside":       append(append([]string{}, as...), "cat", s.outside("closed")),
		"a program that says it":        {"sh", "-c", "echo 'cat: " + s.outside("file") + ": Permission denied' >&2; exit 1"},
		"one that looks whether it may": {"test", "-w", s.outside("none")},
	} {
		session, status, told := e.tool(argv...)
		if status == 0 || len(told) > 0 {
			t.Errorf("%s: status %d, told %+v\n%s", name, status, told, session.Output())
		}
	}
	// The control: the same user, and a file that is open to it.
	harness.Write(t, s.outside("open"), "content")
	if err := os.Chmod(s.outside("open"), 0o644); err != nil {
		t.Fatal(err)
	}
	session, _, told := e.tool(append(append([]string{}, as...), "cat", s.outside("open"))...)
	if _, times := find(told, "read", s.outside("open")); times != 1 {
		t.Errorf("control: told %+v\n%s", told, session.Output())
	}
}

// mostTold is what a session of some seconds may be told of: a burst, twenty a
// second, and a burst in the end.
func mostTold(took time.Duration) int { return 20 + int(took.Seconds()*20) + 1 + 20 }

func count(told []protocol.DeniedParams) (all int) {
	for _, p := range told {
		all += p.Count + p.Missed
	}
	return all
}

// often is how many times a program tries what it may not.
func often() int {
	if testing.Short() {
		return 10_000
	}
	return 100_000
}

// A program that tries the same a hundred thousand times is told of a few
// times, and none is lost.
func TestTheSameAgainAndAgainIsOneThing(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for access, verb := range map[string]string{"write": "open-often", "read": "read-often"} {
		t.Run(access, func(t *testing.T) {
			t.Parallel()
			againAndAgain(t, access, verb)
		})
	}
}

func againAndAgain(t *testing.T, access, verb string) {
	t.Helper()
	s := newScene(t)
	harness.Write(t, s.outside("file"), "content")
	e := s.start(harness.Settings(nil), nil)
	observed(t, e)
	times := often()
	begun := time.Now()
	session, status, told := e.tool(s.victim, verb, s.outside("file"), strconv.Itoa(times))
	lossy := access == "read" && logged(e) // a log that overflows is the kernel's to cut short
	_, events := find(told, access, s.outside("file"))
	if status != 1 || count(told) != times && !lossy || lossy && (events == 0 || count(told) > times) ||
		events != len(told) {
		t.Errorf("status %d, told of %d: %+v\n%s", status, count(told), told, session.Output())
	}
	// The silence after each doubles: 1 s, 2 s, 4 s … up to a minute, and one
	// in the end.
	most := 2
	for silence, at := time.Second, time.Duration(0); at < time.Since(begun); silence = min(2*silence, time.Minute) {
		at += silence
		most++
	}
	if len(told) > most {
		t.Errorf("told %d times in %s, want %d at most: %+v", len(told), time.Since(begun), most, told)
	}
}

// A hundred thousand different things neither flood the editor nor fill the
// sidecar's memory, and another session's go on being told.
func TestManyDifferentThingsAreBounded(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.outside("file"), "content")
	e := s.start(harness.Settings(nil), nil)
	observed(t, e)
	if _, status, _ := e.tool(s.victim, "make-many", s.Outside, "100"); status != 1 {
		t.Fatalf("status %d", status)
	}
	before := peak(t, e.Process())
	times := often()
	begun := time.Now()
	flood := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: s.victim,
		Args: []string{"make-many", s.Outside, strconv.Itoa(times)}})
	// The control of all this: somebody else is heard, and is not mistaken for
	// the other.
	_, _, others := e.tool(s.victim, "open-often", s.outside("file"), "1")
	if _, times := find(others, "write", s.outside("file")); times != 1 || len(others) != 1 {
		t.Errorf("the other session is told %+v", others)
	}
	if exit := flood.Exit(); exit.ExitCode == nil || *exit.ExitCode != 1 {
		t.Errorf("%+v\n%s", exit, flood.Output())
	}
	told := e.told(flood.SessionID)
	took := time.Since(begun)
	if all := count(told); all != times {
		t.Errorf("told of %d, want %d", all, times)
	}
	if len(told) > mostTold(took) {
		t.Errorf("told %d times in %s", len(told), took)
	}
	const mostGrowth = 48 << 10 // KiB; the garbage of requests is part of it
	if grown := peak(t, e.Process()) - before; grown > mostGrowth {
		t.Errorf("memory has grown by %d KiB", grown)
	}
}

// peak is the most memory that a process has had, in KiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	for line := range strings.Lines(harness.Read(t, "/proc/"+strconv.Itoa(pid)+"/status")) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(text)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib
		}
	}
	t.Fatal("the peak of memory is not told")
	return 0
}

// What is ignored is not told, and costs nothing.
func TestIgnoredDenialsAreNotTold(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.outside("file"), "content")
	e := s.start(harness.Settings(harness.Sandbox{"on_denied": "ignore"}), nil)
	session, status, told := e.tool(s.victim, "open-often", s.outside("file"), "1")
	if p := session.Sandbox.Protections["denials"]; status != 1 || len(told) > 0 || p.Status != protocol.Absent {
		t.Errorf("status %d, %+v, told %+v", status, p, told)
	}
}
