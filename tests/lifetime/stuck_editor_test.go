//go:build linux

package lifetime

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// soon is how long a session, and then the sidecar, may live after their editor
// has ended, whatever that editor did before. On an idle machine a session lives
// for less than a tenth of a second. The sidecar waits up to two seconds for an
// editor or a log that reads nothing. Whoever waited for the grace of a session,
// or for what never comes, would wait for longer.
const soon = 10 * time.Second

// stuckEditor is an editor that stops reading.
type stuckEditor struct {
	t       *testing.T
	world   *harness.World
	self    *exec.Cmd // its end is the end of the editor's process
	sidecar *exec.Cmd
	in      *os.File // what the sidecar reads
	out     *os.File
	reader  *bufio.Reader
	log     harness.Buffer
	ended   chan struct{} // closed when the sidecar has ended
}

func newStuckEditor(t *testing.T, logged bool) *stuckEditor {
	t.Helper()
	harness.Procfs(t)
	d := &stuckEditor{t: t, world: harness.NewWorld(t), self: exec.Command("sleep", "1000"), ended: make(chan struct{})}
	harness.Write(t, d.world.UserSettings(), harness.Settings(nil))
	if err := d.self.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.die)
	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	unread, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d.in, d.out, d.reader = in, out, bufio.NewReader(out)
	d.sidecar = exec.Command(harness.Binary(t), "serve")
	d.sidecar.Env, d.sidecar.Stdin, d.sidecar.Stdout, d.sidecar.Stderr = harness.Environ(d.world), stdin, stdout, &d.log
	if !logged {
		d.sidecar.Stderr = stderr
	}
	if err := d.sidecar.Start(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []*os.File{stdin, stdout, stderr} {
		file.Close()
	}
	go func() {
		defer close(d.ended)
		_ = d.sidecar.Wait()
	}()
	t.Cleanup(func() {
		_ = d.sidecar.Process.Kill()
		<-d.ended
		for _, file := range []*os.File{in, out, unread} {
			file.Close()
		}
	})
	return d
}

// die ends the editor's process.
func (d *stuckEditor) die() {
	_ = d.self.Process.Kill()
	_ = d.self.Wait()
}

// send writes frames as long as the sidecar reads them.
func (d *stuckEditor) send(bodies ...string) {
	d.t.Helper()
	var frames bytes.Buffer
	for _, body := range bodies {
		fmt.Fprintf(&frames, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	if err := d.in.SetWriteDeadline(time.Now().Add(harness.Timeout)); err != nil {
		d.t.Fatal(err)
	}
	_, _ = d.in.Write(frames.Bytes())
}

func (d *stuckEditor) request(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

// answer reads up to the answer with an id.
func (d *stuckEditor) answer(id int) json.RawMessage {
	d.t.Helper()
	for {
		message := d.read()
		if string(message["id"]) == strconv.Itoa(id) {
			if message["error"] != nil {
				d.t.Fatalf("request %d: %s", id, message["error"])
			}
			return message["result"]
		}
	}
}

func (d *stuckEditor) read() map[string]json.RawMessage {
	d.t.Helper()
	if err := d.out.SetReadDeadline(time.Now().Add(harness.Timeout)); err != nil {
		d.t.Fatal(err)
	}
	header, err := d.reader.ReadString('\n')
	if err != nil {
		d.t.Fatalf("read: %v; the log:\n%s", err, d.log.String())
	}
	length, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(header, "Content-Length: ")))
	if err != nil {
		d.t.Fatalf("header %q", header)
	}
	frame := make([]byte, 2+length)
	var message map[string]json.RawMessage
	if _, err := io.ReadFull(d.reader, frame); err != nil || json.Unmarshal(frame[2:], &message) != nil {
		d.t.Fatalf("body %q: %v", frame, err)
	}
	return message
}

// If an editor has stopped reading, its sessions still end with it, however it
// ends and however much output waits.
func TestAStuckEditorsSessionsEndWithIt(t *testing.T) {
	t.Parallel()
	loads := []struct {
		name string
		load func(d *stuckEditor)
	}{
		{"nothing", func(*stuckEditor) {}},
		{"requests", func(d *stuckEditor) { d.send(many(d.request(100, "terminal/list", "{}"))...) }},
		{"unknown notifications", func(d *stuckEditor) { d.send(many(`{"jsonrpc":"2.0","method":"no/such"}`)...) }},
		{"a log that nobody reads", func(d *stuckEditor) { d.send(many(`{"jsonrpc":"2.0","method":"no/such"}`)...) }},
		{"bad bodies", func(d *stuckEditor) { d.send(many(`{`)...) }},
		{"floods", func(d *stuckEditor) {
			for id := range 3 {
				d.send(d.request(10+id, "terminal/spawn", fmt.Sprintf(`{"cwd":%q,"command":"yes"}`, d.world.Project)))
				d.answer(10 + id)
			}
		}},
		{"a session that is being closed", func(d *stuckEditor) {
			d.send(d.request(10, "terminal/close", fmt.Sprintf(`{"sessionId":%q,"graceMs":60000}`, session)))
		}},
	}
	ends := []struct {
		name string
		end  func(d *stuckEditor)
	}{
		{"it closes stdin", func(d *stuckEditor) { d.in.Close() }},
		{"it says exit", func(d *stuckEditor) { d.send(`{"jsonrpc":"2.0","method":"exit"}`) }},
		{"it says shutdown and exit", func(d *stuckEditor) {
			d.send(d.request(99, "shutdown", "{}"), `{"jsonrpc":"2.0","method":"exit"}`)
		}},
		{"it is killed", (*stuckEditor).die},
		{"it closes stdout", func(d *stuckEditor) { d.out.Close() }},
	}
	for i, load := range loads {
		for j, end := range ends {
			if !harness.Turn(t, i+j, len(ends)) { // each load has one end in its turn
				continue
			}
			name := load.name + "/" + end.name
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				harness.Quick(t, "the end of both", soon, func() time.Duration {
					return stuckEnd(t, load.name != "a log that nobody reads", load.load, end.end)
				})
			})
		}
	}
}

// stuckEnd is how long a session and its sidecar live after the end of an editor
// that reads nothing.
func stuckEnd(t *testing.T, logged bool, load, end func(d *stuckEditor)) time.Duration {
	t.Helper()
	d := newStuckEditor(t, logged)
	token := uuid.NewString()
	start := fmt.Sprintf(`{"cwd":%q,"sessionId":%q,"command":"trap '' HUP TERM INT; sh -c 'sleep 1000; :' %s & `+
		`echo re''ady; wait"}`,
		d.world.Project, session, token)
	d.send(d.request(1, "initialize", fmt.Sprintf(`{"processId":%d,"capabilities":{}}`, d.self.Process.Pid)))
	d.answer(1)
	d.send(d.request(2, "terminal/spawn", start))
	var spawned struct{ PID int }
	if err := json.Unmarshal(d.answer(2), &spawned); err != nil || spawned.PID == 0 {
		t.Fatalf("%v, %+v", err, spawned)
	}
	harness.Eventually(t, "the session runs", func() bool { return len(harness.Find(token)) > 1 })
	load(d)

	return deadline.Took(d.sidecar.Process.Pid, func() {
		end(d)
		if !harness.Within(func() bool { return len(harness.Find(token)) == 0 && !harness.Alive(spawned.PID) }) {
			harness.Breach(t, "the session lives on; the log:\n%.2000s", d.log.String())
		}
		select {
		case <-d.ended:
		case <-deadline.After(harness.Timeout):
			harness.Breach(t, "the sidecar does not end")
		}
	})
}

// session is the id of the one session that the test watches.
const session = "0b0e7c5e-5c1f-4d8a-9b57-000000000001"

// many is a body 5,000 times.
func many(body string) []string {
	bodies := make([]string, 5000)
	for i := range bodies {
		bodies[i] = body
	}
	return bodies
}
