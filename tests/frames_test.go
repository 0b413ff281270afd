package tests

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Malformed frames and connections that end early.

// serving is the command line of a sidecar in a world of its own.
func serving(t *testing.T) (*exec.Cmd, *harness.World) {
	t.Helper()
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Settings(nil))
	command := exec.Command(harness.Binary(t), "serve")
	command.Env = harness.Environ(w)
	return command, w
}

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"processId":null,"capabilities":{}}}`

// A request before the end of input, or before exit, is answered. The sidecar waits
// two seconds for the last answers, in which a busy machine must reach them.
func TestRequestsRightBeforeTheEndAreAnswered(t *testing.T) {
	t.Parallel()
	const requests = 8
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for name, last := range map[string]string{"the end of input": "", "exit": `{"jsonrpc":"2.0","method":"exit"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range rounds {
				command, w := serving(t)
				var in strings.Builder
				in.WriteString(frame(hello))
				for id := range requests {
					in.WriteString(frame(
						fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"policy/get","params":{"projectDir":%q}}`, id,
							w.Project)))
				}
				in.WriteString(frame("{"))
				if last != "" {
					in.WriteString(frame(last))
				}
				command.Stdin = strings.NewReader(in.String())
				end := deadline.New(harness.Timeout)
				out, err := command.Output()
				if status := command.ProcessState.ExitCode(); status != 1 {
					t.Errorf("exit status %d, %v", status, err)
				}
				for id := range requests {
					if !bytes.Contains(out, fmt.Appendf(nil, `"id":%d,"result":`, id)) {
						t.Errorf("request %d was not answered", id)
					}
				}
				if !bytes.Contains(out, []byte(`"code":-32700`)) {
					t.Error("the bad body was not answered")
				}
				if end.Passed() {
					t.Errorf("took more than %v", harness.Timeout)
				}
			}
		})
	}
}

// A body of the greatest length leaves no memory occupied.
func TestMemoryComesBackAfterLargeBodies(t *testing.T) {
	t.Parallel()
	harness.Procfs(t)
	const mostKept = 60 << 20
	command, _ := serving(t)
	w, err := startWire(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.in.Close()
		<-w.ended
	})
	if _, err := w.request("initialize", `{"processId":null,"capabilities":{}}`); err != nil {
		t.Fatal(err)
	}
	before := resident(t, command.Process.Pid)
	long := strings.Repeat("x", protocol.MaxContentLength-200)
	most, rounds := 0, 3
	if testing.Short() {
		rounds = 2 // two bodies that stay are more than what may
	}
	for range rounds {
		if _, err := w.request("terminal/list", `{"unknown":"`+long+`"}`); err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{`{"jsonrpc":"2.0","method":"no/such","params":["` + long + `"]}`, `["` + long} {
			if err := w.write(frame(body)); err != nil {
				t.Fatal(err)
			}
		}
		most = max(most, resident(t, command.Process.Pid))
	}
	if _, err := w.request("terminal/list", `{}`); err != nil {
		t.Fatal(err)
	}
	most = max(most, resident(t, command.Process.Pid))
	after := 0
	kept := !harness.Within(func() bool {
		after = resident(t, command.Process.Pid)
		return after-before < mostKept
	})
	t.Logf("resident before %d MiB, at most %d MiB, after %d MiB", before>>20, most>>20, after>>20)
	if kept {
		t.Errorf("%d MiB stay", (after-before)>>20)
	}
}

// Any input is answered, ignored, or ends the connection, and never crashes the
// sidecar.
func TestGarbageCrashesNothing(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	connections, frames := 20, 1000
	if testing.Short() {
		connections, frames = 6, 500
	}
	total, cut := 0, 0
	for range connections {
		command, world := serving(t)
		w, err := startWire(command)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.write(frame(hello)); err != nil {
			t.Fatal(err)
		}
		seeds := []string{
			hello, `{"jsonrpc":"2.0","id":1,"method":"terminal/list","params":{}}`,
			`[{"jsonrpc":"2.0","id":1,"method":"terminal/list"}]`,
			`{"jsonrpc":"2.0","id":-1,"method":"terminal/close",` +
				`"params":{"sessionId":"0b0e7c5e-5c1f-4d8a-9b57-000000000001","graceMs":0}}`,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","method":"terminal/spawn",`+
				`"params":{"cwd":%q,"command":"true","env":{"A":"b"},"cols":80}}`, world.Project),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1.5,"method":"policy/explain",`+
				`"params":{"projectDir":%q,"access":"read","target":"/etc"}}`, world.Project),
			`{"jsonrpc":"2.0","method":"terminal/input",` +
				`"params":{"sessionId":"0b0e7c5e-5c1f-4d8a-9b57-000000000001","data":"eA=="}}`,
			`{"jsonrpc":"2.0","method":"terminal/resize","params":{"sessionId":"x","cols":1e9,"rows":-1}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"decision":"user"}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`,
			`{"jsonrpc":"2.0","method":"workspace/didChangeWorkspaceFolders","params":{"added":[{"path":"/tmp"}],"removed":[]}}`,
		}
		for range frames {
			body := []byte(seeds[random.IntN(len(seeds))])
			for range random.IntN(4) {
				switch at := random.IntN(len(body) + 1); random.IntN(4) {
				case 0:
					body = append(body[:at:at], body[min(len(body), at+random.IntN(8)):]...)
				case 1:
					body = append(body[:at:at], append([]byte{byte(random.IntN(256))}, body[at:]...)...)
				case 2:
					body = append(body[:at:at], append([]byte(`[{"\u0000"`[random.IntN(8):]), body[at:]...)...)
				case 3:
					if at < len(body) {
						body[at] ^= 1 << random.IntN(8)
					}
				}
			}
			if err := w.write(frame(string(body))); err != nil {
				cut++ // the seeds hold neither exit nor shutdown, so an early end is counted
				break
			}
			total++
		}
		// A broken header ends the connection cleanly.
		header := []byte("Content-Length: 2\r\n\r\n{}")
		header[random.IntN(len(header)-2)] ^= 1 << random.IntN(8)
		_ = w.write(string(header))
		w.in.Close()
		if !deadline.New(harness.Timeout).Wait(w.ended) {
			t.Fatal("the sidecar does not end")
		}
		if log := w.log.String(); w.status != 1 || strings.Contains(log, "panic") || strings.Contains(log, "BUG(") ||
			len(w.broken) > 0 {
			t.Fatalf("exit status %d, promises broken: %q; the log:\n%.4000s", w.status, w.broken, log)
		}
	}
	t.Logf("%d frames", total)
	if cut > 0 {
		t.Errorf("%d connections ended early", cut)
	}
}
