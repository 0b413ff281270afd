package audit

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	trail "github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

var required = harness.Sandbox{"audit": "file", "audit_required": true}

// mounted runs commands in a mount namespace that a line of shell has prepared.
func mounted(t *testing.T, line string, args ...string) func(*exec.Cmd) {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		harness.Skip(t, "mount_namespace", err.Error())
	}
	wrapper := []string{unshare, "--mount"}
	if os.Geteuid() != 0 {
		wrapper = append(wrapper, "--map-root-user")
	}
	wrapper = append(append(wrapper, "/bin/sh", "-c", line+` && n=$1 && shift && shift "$n" && exec "$@"`, "sh",
		fmt.Sprint(len(args))), args...)
	// The line finds its own arguments after the number.
	wrap := func(command *exec.Cmd) {
		command.Args = append(append([]string{}, wrapper...), append([]string{command.Path}, command.Args[1:]...)...)
		command.Path = wrapper[0]
	}
	try := exec.Command("/bin/true")
	wrap(try)
	if out, err := try.CombinedOutput(); err != nil {
		harness.Skip(t, "mount_namespace", fmt.Sprintf("%v: %s", err, out))
	}
	return wrap
}

// TestAudit_ADiskThatTakesNothing: no new session starts where the trail is
// required, and all start where it is not.
func TestAudit_ADiskThatTakesNothing(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ line, says string }{
		"full": {
			`mount -t tmpfs -o mode=700,size=64k tmpfs "$2" && { cat /dev/zero > "$2/filler" 2>&-; true; }`,
			"no space left on device",
		},
		"read-only": {`mount -t tmpfs -o mode=700,ro tmpfs "$2"`, "read-only file system"},
		"symlink": {
			`mount -t tmpfs -o mode=700 tmpfs "$2" && touch "$3/target" && ln -s "$3/target" "$2/audit.jsonl"`,
			"not a private file of this user",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, required)
			harness.MakeDir(t, s.dir())
			s.wrap = mounted(t, row.line, s.dir(), s.w.Outside)
			out, ok := s.run("exec", "--", "touch", "runs")
			if text := harness.Unfold(out); ok || !strings.Contains(text, "the audit trail cannot be written") ||
				!strings.Contains(text, row.says) || !strings.Contains(text, "hint:") {
				t.Errorf("required: %s", out)
			}
			if _, err := os.Stat(s.w.ProjectPath("runs")); err == nil {
				t.Error("the program has run")
			}
			s.settings(file)
			if out, ok := s.run("exec", "--", "touch", "runs"); !ok ||
				!strings.Contains(harness.Unfold(out), "warning: the audit trail loses lines: ") {
				t.Errorf("not required: %s", out)
			}
			if _, err := os.Stat(s.w.ProjectPath("runs")); err != nil {
				t.Error(err)
			}
			if target := harness.Read(t, s.w.OutsidePath("target")); target != "" {
				t.Errorf("the symlink was followed: %s", target)
			}
		})
	}
}

// TestAudit_AFullDiskIsToldOf: sessions that run go on, new ones are refused,
// and the next line says how many are missing.
func TestAudit_AFullDiskIsToldOf(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	harness.MakeDir(t, s.dir())
	e := harness.Start(t, s.w, harness.Options{
		Settings: harness.Settings(required),
		Wrap:     mounted(t, `mount -t tmpfs -o mode=700,size=256k tmpfs "$2"`, s.dir()),
	})
	inside := fmt.Sprintf("/proc/%d/root%s", e.Process(), s.dir())
	tool := protocol.SpawnParams{Kind: protocol.Tool, Cwd: s.w.Project, Command: "read line; exit 4"}
	running := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Terminal, Cwd: s.w.Project, Command: "echo on; read line; exit 4",
	})
	running.Await("on")
	filler, err := os.Create(filepath.Join(inside, "filler"))
	harness.Must(t, err)
	for written := 1; written > 0; {
		written, _ = filler.Write(make([]byte, 100))
	}
	harness.Must(t, filler.Close())
	// What is left of the last page may take a line or two.
	harness.Eventually(t, "sessions are refused", func() bool {
		_, err = harness.Try(e, protocol.Spawn, tool)
		return err != nil
	})
	if !strings.Contains(err.Error(), "no space left on device") {
		t.Error(err)
	}
	running.Type("\n")
	if exit := running.Exit(); exit.ExitCode == nil || *exit.ExitCode != 4 {
		t.Errorf("the session that ran: %+v", exit)
	}
	harness.Must(t, os.Remove(filepath.Join(inside, "filler")))
	if _, err := harness.Try(e, protocol.Spawn, tool); err != nil {
		t.Error(err)
	}
	lost := 0
	torn, err := trail.Read(inside, trail.Filter{}, func(event trail.Event, _ []byte) error {
		lost += event.Lost
		return nil
	})
	if err != nil || torn > 0 || lost == 0 {
		t.Errorf("%d lines are told to be lost, %d are torn: %v", lost, torn, err)
	}
}

// TestAudit_ADiskThatHangs holds up nobody for long, and refuses nobody without
// audit_required. Not even SIGKILL ends a wait for the disk.
func TestAudit_ADiskThatHangs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		block   harness.Sandbox
		refused bool
	}{"required": {required, true}, "not required": {file, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, row.block)
			harness.MakeDir(t, s.dir())
			fuse := harness.NewFUSE(t, s.dir(), nil)
			fuse.Hang()
			t.Cleanup(fuse.Answer)
			s.wrap = fuse.Wrap
			end := deadline.New(harness.Timeout)
			out, ok := s.run("exec", "--", "echo", "it runs")
			if end.Passed() {
				t.Errorf("it took more than %s", harness.Timeout)
			}
			if ok == row.refused || strings.Contains(out, "it runs") == row.refused ||
				!strings.Contains(harness.Unfold(out), "the file system does not answer") {
				t.Errorf("%s", out)
			}
			if fuse.Held() == 0 {
				t.Error("nobody has asked the disk")
			}
		})
	}
}

// TestAudit_TwoHundredSessionsAtOnce: all are refused files, and end, in the same
// moment. No line of theirs is lost, and none is torn.
func TestAudit_TwoHundredSessionsAtOnce(t *testing.T) {
	t.Parallel()
	const editors, each, refusals = 4, 50, 5
	s := newScene(t, nil)
	line := "echo on; read line; cat"
	for i := range refusals {
		path := s.w.OutsidePath(fmt.Sprintf("secret%d", i))
		harness.Write(t, path, "x")
		line += " " + path
	}
	var list []*harness.Session
	for range editors {
		e := harness.Start(t, s.w, harness.Options{Settings: harness.Settings(file)})
		for range each {
			list = append(list, e.Spawn(protocol.SpawnParams{
				Kind: protocol.Terminal, Cwd: s.w.Project, Command: line + "; exit 4",
			}))
		}
	}
	for _, session := range list {
		session.Await("on")
	}
	for _, session := range list {
		session.Type("\n")
	}
	for _, session := range list {
		if exit := session.Exit(); exit.ExitCode == nil || *exit.ExitCode != 4 {
			t.Errorf("%+v", exit)
		}
	}
	want := map[string]int{trail.Spawn: 1, trail.Started: 1, trail.Refused: refusals, trail.Ended: 1}
	got := map[string]map[string]int{}
	harness.Eventually(t, "the last line is written", func() bool {
		return len(of(s.events(), trail.Ended)) >= len(list)
	})
	for _, e := range s.events() {
		if e.Lost > 0 {
			harness.Breach(t, "%d lines are lost", e.Lost)
		}
		if e.Event == trail.Review {
			continue // another test builds a program meanwhile
		}
		if got[e.Session] == nil {
			got[e.Session] = map[string]int{}
		}
		got[e.Session][e.Event]++
	}
	for _, session := range list {
		if !maps.Equal(got[session.SessionID], want) {
			t.Errorf("%s: %v", session.SessionID, got[session.SessionID])
		}
	}
	if out, ok := s.run("audit"); !ok || strings.Contains(out, "broken lines") {
		t.Errorf("%.300s", out)
	}
}

// journal is a socket in the place of journald's, and what arrives there.
type journal struct {
	dir     string
	entries chan string
}

func newJournal(t *testing.T) *journal {
	t.Helper()
	j := &journal{dir: harness.ShortDir(t), entries: make(chan string, 100)}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: filepath.Join(j.dir, "socket")})
	harness.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	harness.Must(t, os.Chmod(filepath.Join(j.dir, "socket"), 0o666))
	go func() {
		buffer := make([]byte, 1<<17)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			j.entries <- string(buffer[:n])
		}
	}()
	return j
}

// wrap lets commands find it where journald's is.
func (j *journal) wrap(t *testing.T) func(*exec.Cmd) {
	t.Helper()
	return mounted(t,
		`mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/journal && mount --bind "$2" /run/systemd/journal`, j.dir)
}

func (j *journal) next(t *testing.T) string {
	t.Helper()
	select {
	case entry := <-j.entries:
		return entry
	case <-deadline.After(harness.Timeout):
		t.Fatal("nothing arrives in the journal")
		return ""
	}
}

// TestAudit_Journal: the lines arrive with fields, and nothing is in a file.
func TestAudit_Journal(t *testing.T) {
	t.Parallel()
	s := newScene(t, harness.Sandbox{"audit": "journal", "audit_required": true})
	j := newJournal(t)
	s.wrap = j.wrap(t)
	// Longer than a field of one line may be.
	if out, ok := s.run("exec", "--", "sh", "-c", "exit 0", strings.Repeat("x", 3000), "two\nlines"); !ok {
		t.Fatal(out)
	}
	for _, kind := range []string{trail.Spawn, trail.Started, trail.Ended} {
		entry := j.next(t)
		_, line, found := strings.Cut(entry, "MESSAGE=")
		line, _, _ = strings.Cut(line, "\n")
		if !found || !strings.Contains(entry, "SYSLOG_IDENTIFIER="+trail.Identifier+"\n") ||
			!strings.Contains(entry, "SANDBOX_SIDECAR_EVENT="+kind+"\n") ||
			!strings.Contains(entry, "SANDBOX_SIDECAR_PROJECT="+s.w.Project+"\n") {
			t.Errorf("%s: %s", kind, entry)
		}
		read := 0
		count := func(trail.Event, []byte) error {
			read++
			return nil
		}
		torn, err := trail.ReadLines(bytes.NewReader([]byte(line+"\n")), trail.Filter{}, count)
		if torn > 0 || err != nil || read != 1 {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := os.Stat(s.dir()); err == nil {
		t.Error("there is a file, too")
	}
	s.wrap = mounted(t, "mount -t tmpfs tmpfs /run")
	if out, ok := s.run("exec", "--", "true"); ok ||
		!strings.Contains(harness.Unfold(out), "the audit trail cannot be written") {
		t.Errorf("without a journal: %s", out)
	}
}

// TestAudit_SessionsDoNotReachTheJournal, where they could forge lines. Without
// a sandbox they do.
func TestAudit_SessionsDoNotReachTheJournal(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	s := newScene(t, nil)
	j := newJournal(t)
	s.wrap = j.wrap(t)
	forge := []string{"exec", "--", "python3", "-c", `import socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"MESSAGE=forged\n", "/run/systemd/journal/socket")`}
	if out, ok := s.run(forge...); ok {
		t.Errorf("it succeeds: %s", out)
	}
	harness.Write(t, s.w.UserSettings(), harness.Off())
	if out, ok := s.run(forge...); !ok {
		t.Errorf("control: %s", out)
	}
	if entry := j.next(t); entry != "MESSAGE=forged\n" || len(j.entries) > 0 {
		t.Errorf("%q, and %d more", entry, len(j.entries))
	}
}
