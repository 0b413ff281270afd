package tests

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// mostGrowth is how much a sidecar's memory may grow under a flood: far more
// than its queues hold, far less than a flood.
const mostGrowth = 32 << 20

// resident is the memory that a process occupies, in bytes (VmRSS of
// proc_pid_status(5)).
func resident(t *testing.T, pid int) int {
	t.Helper()
	harness.Procfs(t)
	status := harness.Read(t, fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatalf("no VmRSS in %q", status)
	return 0
}

// echo starts a session that repeats its input.
func echo(e *harness.Editor) *harness.Session {
	s := e.Spawn(protocol.SpawnParams{Command: "stty -echo; echo ready; exec cat"})
	s.Await("ready")
	return s
}

func TestBytes_50MegabytesArriveUnchanged(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	const size = 50 << 20
	want := sha256.New()
	file, err := os.Create(filepath.Join(w.Project, "random"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.MultiWriter(file, want), rand.NewChaCha8([32]byte{7}), size); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for _, flowControl := range []bool{false, true} {
		t.Run(fmt.Sprintf("flow control %t", flowControl), func(t *testing.T) {
			e := harness.Start(t, w, harness.Options{Initialize: func(p *protocol.InitializeParams) {
				p.Capabilities.FlowControl = flowControl
			}})
			got, length := sha256.New(), 0
			client.On(e.Client, protocol.Output, func(p protocol.OutputParams) {
				got.Write(p.Data)
				length += len(p.Data)
				if flowControl {
					harness.Notify(e, protocol.Ack, protocol.AckParams{SessionID: p.SessionID, Bytes: len(p.Data)})
				}
			})
			s := e.Spawn(protocol.SpawnParams{Command: "stty raw -echo; exec cat random"})
			exit := s.Exit() // after the last output, on the goroutine that has counted it
			if length != size || !bytes.Equal(got.Sum(nil), want.Sum(nil)) || exit.ExitCode == nil ||
				*exit.ExitCode != 0 {
				harness.Breach(t, "%d of %d bytes arrived, unchanged: %t; %+v", length, size,
					bytes.Equal(got.Sum(nil), want.Sum(nil)), exit)
			}
		})
	}
}

func TestFlowControl_AnEditorThatNeverAcksHoldsItsSessionAlone(t *testing.T) {
	t.Parallel()
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Initialize: func(p *protocol.InitializeParams) {
		p.Capabilities.FlowControl = true
	}})
	other := echo(e)
	before := resident(t, e.Process())
	flood := e.Spawn(protocol.SpawnParams{Command: "yes"})
	const window = 128 << 10
	harness.Eventually(t, "a full window", func() bool { return len(flood.Raw()) >= window })
	for i := range 300 {
		word := fmt.Sprintf("word %d", i)
		other.Type(word + "\n")
		other.Await(word + "\r\n")
	}
	if got, most := len(flood.Raw()), window+64<<10; got > most {
		t.Errorf("%d bytes came without an ack, want at most %d", got, most)
	}
	if grown := resident(t, e.Process()) - before; grown > mostGrowth {
		t.Errorf("the sidecar has grown by %d MiB", grown>>20)
	}
	// An ack lets as much through again, and closing needs none. The test
	// acknowledges everything: a last piece may exceed the window, and with
	// half of a window only one small piece could follow.
	held := len(flood.Raw())
	harness.Notify(e, protocol.Ack, protocol.AckParams{SessionID: flood.SessionID, Bytes: held})
	harness.Eventually(t, "another window after an ack", func() bool { return len(flood.Raw()) >= held+window })
	flood.Close(0)
}

func TestFlood_AnEditorThatDoesNotReadCostsNoMemory(t *testing.T) {
	t.Parallel()
	harness.Procfs(t)
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Settings(nil))
	command := exec.Command(harness.Binary(t), "serve")
	command.Env = harness.Environ(w)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	pid := command.Process.Pid
	send := func(method, params string) {
		t.Helper()
		if _, err := io.WriteString(in, frame(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method,
			params))); err != nil {
			t.Fatal(err)
		}
	}
	send("initialize", `{"processId":null,"capabilities":{}}`)
	for range 4 {
		send("terminal/spawn", fmt.Sprintf(`{"cwd":%q,"command":"yes"}`, w.Project))
	}
	if _, err := io.CopyN(io.Discard, bufio.NewReaderSize(out, 1), 4<<20); err != nil {
		t.Fatal(err)
	}
	before := resident(t, pid)
	// From here on nothing reads. The sidecar comes to rest: its processor time
	// does not change for many readings.
	last, still := "", 0
	harness.Eventually(t, "a sidecar at rest", func() bool {
		if grown := resident(t, pid) - before; grown > mostGrowth {
			t.Fatalf("the sidecar has grown by %d MiB", grown>>20)
		}
		stat := strings.Fields(harness.Read(t, fmt.Sprintf("/proc/%d/stat", pid)))
		if used := stat[13] + " " + stat[14]; used == last {
			still++
		} else {
			last, still = used, 0
		}
		return still >= 40
	})
	// It can still be ended.
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case <-ended:
	case <-deadline.After(harness.Timeout):
		t.Fatal("the sidecar does not end")
	}
}

func TestFlood_InputArrivesWhileOutputFloods(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{})
	client.On(e.Client, protocol.Output, func(protocol.OutputParams) {})
	want := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{9}).Read(want)
	s := e.Spawn(protocol.SpawnParams{Command: "stty raw -echo; yes & touch started; head -c 1048576 >arrived; kill " +
		"$!; exit 3"})
	harness.Eventually(t, "raw mode", func() bool {
		_, err := os.Stat(filepath.Join(w.Project, "started"))
		return err == nil
	})
	for piece := want; len(piece) > 0; {
		n := min(len(piece), 10_000)
		s.Type(string(piece[:n]))
		piece = piece[n:]
	}
	if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != 3 {
		t.Errorf("ended with %+v", exit)
	}
	if got := harness.Read(t, filepath.Join(w.Project, "arrived")); got != string(want) {
		harness.Breach(t, "%d bytes of %d arrived, unchanged: %t", len(got), len(want),
			strings.HasPrefix(string(want), got))
	}
}

func TestFlood_KeystrokesEchoMeanwhile(t *testing.T) {
	t.Parallel()
	e := harness.Start(t, harness.NewWorld(t), harness.Options{})
	other := echo(e)
	flood := e.Spawn(protocol.SpawnParams{Command: "exec yes >/dev/tty"})
	flood.Await("y")
	const keys = 50
	var echoes []time.Duration
	for i := range keys {
		word := fmt.Sprintf("word %d", i)
		echoes = append(echoes, deadline.TookBy(func() {
			other.Type(word + "\n")
			other.Await(word + "\r\n")
		}, e.Process(), other.PID))
	}
	flood.Close(0)
	// Waiting behind the flood would take a second for each key. Something else may
	// delay some of them as long, so a tenth of them must be sooner.
	slices.Sort(echoes)
	t.Logf("an echo takes %v to %v", echoes[0], echoes[keys-1])
	if tenth := echoes[keys/10]; tenth > 500*time.Millisecond {
		t.Errorf("nine of ten echoes take more than %v", tenth)
	}
}
