//go:build unix

package control

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// place makes a state directory with a directory for a socket.
func place(t *testing.T) (stateDir, dir string) {
	t.Helper()
	stateDir = filepath.Join(harness.ShortDir(t), "state")
	dir = filepath.Join(stateDir, "s1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return stateDir, dir
}

func listen(t *testing.T, dir string) { listenWith(t, dir, nil) }

func listenWith(t *testing.T, dir string, retire func(string, bool) error) {
	t.Helper()
	l, err := Listen(dir, func() { os.RemoveAll(dir) }, Options{
		By: "test", Client: func() string { return "client" }, Spawner: &spawn.Spawner{},
		Logger: slog.New(slog.DiscardHandler), Retire: retire, patience: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
}

// What is no request is answered by the end of the connection or by a refusal, and
// others are still answered.
func TestListener_BelievesNobody(t *testing.T) {
	t.Parallel()
	stateDir, dir := place(t)
	listen(t, dir)
	// Only what is wrong with a request may be why it is refused.
	of := fmt.Sprintf(`{"version":%d`, version)
	for name, text := range map[string]string{
		"garbage":          "\x00\xff\n",
		"half a message":   of,
		"no JSON":          "GET / HTTP/1.1\r\n\r\n",
		"two in a line":    of + `,"list":{}}` + of + `,"list":{}}` + "\n",
		"an unknown field": of + `,"list":{},"shell":{}}` + "\n",
		"a wrong type":     of + `,"list":[]}` + "\n",
		"no request":       of + "}\n",
		"another version":  `{"version":2,"retire":{"sandbox":"x"}}` + "\n",
		"no sandbox":       of + `,"retire":{"sandbox":"x"}}` + "\n",
		"too long":         strings.Repeat(" ", 2*maxMessage),
		"nothing":          "",
		"an empty line":    "\n",
	} {
		c, err := net.Dial("unix", filepath.Join(dir, "control"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(c, text) // the listener may have closed it
			_ = c.(*net.UnixConn).CloseWrite()
		}()
		got, _ := io.ReadAll(c)
		if len(got) > 0 && !bytes.HasPrefix(got, []byte(`{"refused":`)) {
			t.Errorf("%s: %s", name, got)
		}
		c.Close()
	}
	found, silent := List([]string{stateDir})
	if len(silent) > 0 || len(found) != 1 || found[0].By != "test" || found[0].Client != "client" ||
		found[0].PID != os.Getpid() {
		t.Errorf("found %+v, %v", found, silent)
	}
}

// A sandbox is retired only by its id, and only where sandboxes are kept for links.
func TestRetire(t *testing.T) {
	t.Parallel()
	stateDir, dir := place(t)
	asked := make(chan string, 4)
	listenWith(t, dir, func(sandbox string, idle bool) error {
		asked <- fmt.Sprint(sandbox, " ", idle)
		if sandbox != "kept" {
			return ErrBusy
		}
		return nil
	})
	socket := filepath.Join(dir, "control")
	if err := At(stateDir, socket).Retire("kept"); err != nil {
		t.Errorf("control: %v", err)
	}
	if err := At(stateDir, socket).Retire("other"); err == nil {
		t.Error("another sandbox was retired")
	}
	if err := At(stateDir, socket).EndIdle("kept"); err != nil {
		t.Errorf("control: %v", err)
	}
	if err := At(stateDir, socket).EndIdle("other"); err == nil || !strings.Contains(err.Error(), ErrBusy.Error()) ||
		errors.Is(err, ErrAbsent) {
		t.Errorf("one in which something runs: %v", err)
	}
	for _, want := range []string{"kept false", "other false", "kept true", "other true"} {
		if got := <-asked; got != want {
			t.Errorf("asked for %q, want %q", got, want)
		}
	}
	if err := At(filepath.Join(stateDir, "other"), socket).Retire("kept"); err == nil {
		t.Error("a process was asked whose socket is elsewhere")
	}
	stateDir, dir = place(t)
	listen(t, dir)
	if err := At(stateDir, filepath.Join(dir, "control")).Retire("kept"); err == nil {
		t.Error("a process that keeps none has retired a sandbox")
	}
	if err := At(stateDir, filepath.Join(stateDir, "s2", "control")).Retire("kept"); err == nil {
		t.Error("no process has retired a sandbox")
	}
	if err := At(stateDir, filepath.Join(stateDir, "s2", "control")).EndIdle("kept"); !errors.Is(err, ErrAbsent) {
		t.Errorf("where nothing listens: %v", err)
	}
}

// Beyond a number of connections no command is started, and the answer says so. Far
// beyond it, connections are closed. Later ones are served.
func TestListener_IsBounded(t *testing.T) {
	t.Parallel()
	stateDir, dir := place(t)
	listen(t, dir)
	var held []net.Conn
	hold := func(count int) {
		t.Helper()
		for range count {
			c, err := net.Dial("unix", filepath.Join(dir, "control"))
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, c)
		}
	}
	ask := func(c net.Conn, what string) string {
		t.Helper()
		if _, err := fmt.Fprintf(c, `{"version":%d,%s}`+"\n", version, what); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	command := `"join":{"sandbox":"x","argv":["L2Jpbi90cnVl"],"env":null,"dir":"Lw=="}`
	full := fmt.Sprintf("it has no room: %d others", maxConnections)
	hold(maxConnections)
	if answer := ask(held[maxConnections-1], command); strings.Contains(answer, full) {
		t.Errorf("control: the last command that has room: %s", answer)
	}
	hold(maxFull + 1) // at least the last one is too many, as the one above has ended
	if answer := ask(held[maxConnections+1], command); !strings.Contains(answer, full) {
		t.Errorf("a command beyond that: %s", answer)
	}
	if answer := ask(held[maxConnections+2], `"list":{}`); !strings.HasPrefix(answer, `{"runs":`) {
		t.Errorf("a question beyond that: %s", answer)
	}
	for range maxFull { // the answered ones have ended, or are about to
		hold(1)
	}
	if n, err := held[len(held)-1].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("far too many: %d bytes, %v", n, err)
	}
	for _, c := range held {
		c.Close()
	}
	harness.Eventually(t, "it answers again", func() bool {
		found, _ := List([]string{stateDir})
		return len(found) == 1
	})
}

// A socket that nobody listens on is removed with its directory, unless the
// directory has something else.
func TestList_RemovesWhatIsLeft(t *testing.T) {
	t.Parallel()
	if !refusedMeansEnded {
		t.Log("this system refuses for other reasons, too: nothing is removed")
	}
	stateDir, dir := place(t)
	other := filepath.Join(stateDir, "s2")
	for _, one := range []string{dir, other} {
		_ = os.Mkdir(one, 0o700)
		path := filepath.Join(one, "control")
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	harness.Write(t, filepath.Join(other, "file"), "")
	if found, silent := List([]string{stateDir}); len(found)+len(silent) > 0 {
		t.Errorf("found %+v, %v", found, silent)
	}
	for path, want := range map[string]bool{
		dir: !refusedMeansEnded, filepath.Join(other, "control"): !refusedMeansEnded,
		filepath.Join(other, "file"): true,
	} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: exists: %v, want %v", path, err == nil, want)
		}
	}
}

// A program of another version is told what runs, as ps is while an older one still
// runs. It starts and ends nothing.
func TestListener_TellsEachVersionWhatRuns(t *testing.T) {
	t.Parallel()
	_, dir := place(t)
	listenWith(t, dir, func(string, bool) error { return nil })
	const refused = `{"refused":"it speaks version`
	for asked, want := range map[string]string{
		`{"version":1,"list":{}}`: `{"runs":`, `{"version":2,"list":{}}`: `{"runs":`,
		`{"version":1,"retire":{"sandbox":"x"}}`:                                   refused,
		`{"version":2,"join":{"sandbox":"x","argv":[""],"env":null,"dir":"Lw=="}}`: refused,
		// A later version may have other fields, and other types of them.
		fmt.Sprintf(`{"version":%d,"join":{"sandbox":"x","later":1}}`, version+1): refused,
		fmt.Sprintf(`{"version":%d,"join":["x"],"later":{}}`, version+1):          refused,
		fmt.Sprintf(`{"version":%d,"retire":{"sandbox":"x"}}`, version):           `{"retired":true`,
		// Of this version, the same is no request.
		fmt.Sprintf(`{"version":%d,"retire":{"sandbox":"x","later":1}}`, version): "",
		`{"later":{}}`: "",
	} {
		c, err := net.Dial("unix", filepath.Join(dir, "control"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, asked+"\n"); err != nil {
			t.Fatal(err)
		}
		got, _ := bufio.NewReader(c).ReadString('\n')
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %s", asked, got)
		}
		c.Close()
	}
}

// Only where nothing listens is a sandbox absent, so that a new one takes its place.
// Any other error says that the process may run.
func TestJoinLink_IsAbsentOnlyWhereNothingListens(t *testing.T) {
	t.Parallel()
	stateDir, dir := place(t)
	socket := filepath.Join(dir, "control")
	joining := spawn.Joining{Argv: []string{"true"}, Dir: "/", Files: new([3]*os.File)}
	for i := range joining.Files {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { null.Close() })
		joining.Files[i] = null
	}
	join := func(at string) error {
		joined, err := At(at, socket).JoinLink("x", "place", joining)
		if err == nil {
			joined.Close()
		}
		return err
	}
	absent := func(name string, want bool, err error) {
		t.Helper()
		if !errors.Is(err, ErrNotStarted) || errors.Is(err, ErrAbsent) != want ||
			strings.Contains(err.Error(), "process 0") {
			t.Errorf("%s: %v, want absent: %v", name, err, want)
		}
	}
	absent("no socket", true, join(stateDir))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(socket, 0o600); err != nil {
		t.Fatal(err)
	}
	absent("a socket elsewhere", false, join(filepath.Join(stateDir, "other")))
	if err := os.Chmod(socket, 0o644); err != nil {
		t.Fatal(err)
	}
	absent("a socket that is not private", false, join(stateDir))
	if err := os.Chmod(socket, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		if c, err := l.AcceptUnix(); err == nil {
			c.Close()
		}
	}()
	err = join(stateDir)
	absent("a process that answers nothing", false, err)
	if !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("the process is not named: %v", err)
	}
	l.Close()
	absent("a socket that is left", true, join(stateDir))
}
