//go:build linux

package denials

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// The sandbox does not report what would have failed without it, nor what a
// program merely says.
func TestOtherFailuresAreNotReported(t *testing.T) {
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
	harness.Write(t, s.OutsidePath("closed"), "content")
	if err := os.Chmod(s.OutsidePath("closed"), 0); err != nil {
		t.Fatal(err)
	}
	e := s.start(harness.Settings(harness.Sandbox{"on_denied": onDenied}), nil)
	observed(t, e)
	as := []string{}
	if os.Geteuid() == 0 { // root is bound by no modes; another user must be able to reach the file
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
		"no such file":              {"cat", s.OutsidePath("none")},
		"no such directory":         {"touch", s.OutsidePath("none/file")},
		"a directory that is there": {"mkdir", s.Outside},
		"a file's mode":             append(append([]string{}, as...), "cat", closed),
		"the mode of one outside":   append(append([]string{}, as...), "cat", s.OutsidePath("closed")),
		"a program that says it": {"sh", "-c", "echo 'cat: " + s.OutsidePath("file") +
			": Permission denied' >&2; exit 1"},
		"one that looks whether it may": {"test", "-w", s.OutsidePath("none")},
	} {
		session, status, denials := e.tool(argv...)
		if status == 0 || len(denials) > 0 {
			t.Errorf("%s: status %d, denials %+v\n%s", name, status, denials, session.Output())
		}
	}
	// The control: the same user, and a file that is open to it.
	harness.Write(t, s.OutsidePath("open"), "content")
	if err := os.Chmod(s.OutsidePath("open"), 0o644); err != nil {
		t.Fatal(err)
	}
	session, _, denials := e.tool(append(append([]string{}, as...), "cat", s.OutsidePath("open"))...)
	if _, times := find(denials, "read", s.OutsidePath("open")); times != 1 {
		t.Errorf("control: denials %+v\n%s", denials, session.Output())
	}
}

// A process of the session that has ended is in no cgroup, but it is not outside.
func TestASignalToTheDeadIsNotReported(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "signals")
	s := newScene(t)
	e := s.start(harness.Settings(nil), nil)
	observed(t, e)
	session, status, denials := e.tool(s.Victim, "kill-dead", "/bin/true")
	if status != 0 || len(denials) > 0 {
		t.Errorf("status %d, denials %+v\n%s", status, denials, session.Output())
	}
	pid := s.target()
	_, status, denials = e.tool(s.Victim, "terminate", pid)
	if _, times := find(denials, "signal", pid); status == 0 || times != 1 {
		t.Errorf("control: status %d, denials %+v", status, denials)
	}
}

// mostReports is the most that a session of some seconds may report: a burst,
// twenty a second, and a burst at its end.
func mostReports(took time.Duration) int { return 20 + int(took.Seconds()*20) + 1 + 20 }

func count(denials []protocol.DeniedParams) (all int) {
	for _, p := range denials {
		all += p.Count + p.Missed
	}
	return all
}

// A program that tries the same operation a hundred thousand times causes a few
// reports, whose counts add up to all.
func TestRepeatedDenialsAreReportedOnce(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for access, action := range map[string]string{"write": "open-often", "read": "read-often"} {
		t.Run(access, func(t *testing.T) {
			t.Parallel()
			againAndAgain(t, access, action)
		})
	}
}

func againAndAgain(t *testing.T, access, action string) {
	t.Helper()
	s := newScene(t)
	harness.Write(t, s.OutsidePath("file"), "content")
	e := s.start(harness.Settings(nil), nil)
	observed(t, e)
	times := shorter(100_000, 4_000)
	begun := time.Now()
	session, status, denials := e.tool(s.Victim, action, s.OutsidePath("file"), strconv.Itoa(times))
	_, events := find(denials, access, s.OutsidePath("file"))
	if status != 1 || count(denials) != times || events != len(denials) {
		t.Errorf("status %d, %d reported: %+v\n%s", status, count(denials), denials, session.Output())
	}
	// The pause after each report is a second at least, and one more report comes
	// at the end. The pauses double only while the program goes on trying, and a
	// busy machine may stop it.
	if most := 3 + int(time.Since(begun).Seconds()); len(denials) > most {
		t.Errorf("reported %d times in %s, want %d at most: %+v", len(denials), time.Since(begun), most, denials)
	}
}

// A hundred thousand different denials neither flood the editor nor fill the
// sidecar's memory. Those of another session are still reported.
func TestManyDifferentThingsAreBounded(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.OutsidePath("file"), "content")
	e := s.start(harness.Settings(nil), nil)
	observed(t, e)
	if _, status, _ := e.tool(s.Victim, "make-many", s.Outside, "100"); status != 1 {
		t.Fatalf("status %d", status)
	}
	before := peak(t, e.Process())
	times := shorter(100_000, 10_000)
	begun := time.Now()
	flood := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Command: s.Victim,
		Args: []string{"make-many", s.Outside, strconv.Itoa(times)},
	})
	// The control: the denial of another session is reported, and not counted
	// as one of these.
	_, _, others := e.tool(s.Victim, "open-often", s.OutsidePath("file"), "1")
	if _, times := find(others, "write", s.OutsidePath("file")); times != 1 || len(others) != 1 {
		t.Errorf("the other session gets %+v", others)
	}
	if exit := flood.Exit(); exit.ExitCode == nil || *exit.ExitCode != 1 {
		t.Errorf("%+v\n%s", exit, flood.Output())
	}
	denials := e.denials.Of(flood.SessionID)
	took := time.Since(begun)
	if all := count(denials); all != times {
		t.Errorf("%d reported, want %d", all, times)
	}
	if len(denials) > mostReports(took) {
		t.Errorf("reported %d times in %s", len(denials), took)
	}
	const mostGrowth = 48 << 10 // KiB, including the garbage of requests
	if grown := peak(t, e.Process()) - before; grown > mostGrowth {
		t.Errorf("memory has grown by %d KiB", grown)
	}
}

// peak is the maximum resident memory of a process so far, in KiB.
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
	t.Fatal("the peak of memory is not printed")
	return 0
}

// A denial that the settings ignore is not reported, and costs nothing.
func TestIgnoredDenialsAreNotReported(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	harness.Write(t, s.OutsidePath("file"), "content")
	e := s.start(harness.Settings(harness.Sandbox{"on_denied": "ignore"}), nil)
	session, status, denials := e.tool(s.Victim, "open-often", s.OutsidePath("file"), "1")
	if p := session.Sandbox.Protections["denials"]; status != 1 || len(denials) > 0 || p.Status != protocol.Absent {
		t.Errorf("status %d, %+v, denials %+v", status, p, denials)
	}
}

// After five refusals in a minute, or as many questions that were withdrawn, a
// session puts no question for a minute. The report says so. Whoever says yes is
// asked on.
func TestRefusedQuestionsComeToAnEnd(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	const most = 5
	files := shorter(40, 12)
	s := newScene(t)
	for i := range files {
		harness.Write(t, s.OutsidePath(fmt.Sprint(i)), "content\n")
	}
	each := fmt.Sprintf("i=0; while [ $i -lt %d ]; do %%s; i=$((i+1)); done; true", files)
	read := fmt.Sprintf(each, "cat "+s.Outside+"/$i")

	e := s.ask(nil, always(protocol.DecisionDeny))
	session, _, denials := e.tool("sh", "-c", read)
	if got := len(e.all()); got != most || strings.Contains(session.Output(), "content") {
		harness.Breach(t, "asked %d times, of which all were refused: %s", got, session.Output())
	}
	told := 0
	for _, denial := range denials {
		if strings.Contains(denial.Message, "You were not asked, because 5 questions were refused in a minute.") {
			told++
		}
	}
	if told == 0 || told != len(denials)-most {
		t.Errorf("%d of %d denials say that nobody was asked", told, len(denials))
	}

	// The control: nothing ends the questions of somebody who says yes.
	e = s.ask(nil, always(protocol.DecisionOnce))
	if session, _, _ := e.tool("sh", "-c", read); len(e.all()) != files ||
		strings.Count(session.Output(), "content") != files {
		t.Errorf("control: asked %d times: %s", len(e.all()), session.Output())
	}

	// Programs that do not wait for an answer gain nothing.
	never := make(chan bool)
	t.Cleanup(func() { close(never) })
	e = s.ask(nil, func(protocol.RequestAccessParams) protocol.Decision {
		<-never
		return protocol.DecisionOnce
	})
	terminal := e.Shell()
	for i := range most {
		terminal.Type(fmt.Sprintf("trap 'echo inter''rupted %d' INT; cat %s/%d\n", i, s.Outside, i))
		harness.Eventually(t, "it asks", func() bool { return len(e.all()) == i+1 })
		terminal.Type("\x03")
		terminal.Await(fmt.Sprintf("interrupted %d", i))
		e.awaitWithdrawn(t, i+1)
	}
	terminal.Type(fmt.Sprintf("cat %s/%d\n", s.Outside, most))
	terminal.Await("Permission denied")
	if got := len(e.all()); got != most {
		harness.Breach(t, "asked %d times, of which %d were withdrawn", got, most)
	}
	terminal.Close(0)
}
