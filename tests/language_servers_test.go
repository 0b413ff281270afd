//go:build linux

package tests

import (
	"bufio"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// languageServers are real ones, by language.
var languageServers = map[string][]string{
	"Bash":   {"bash-language-server", "start"},
	"JSON":   {"vscode-json-languageserver", "--stdio"},
	"Python": {"pyright-langserver", "--stdio"},
	"Vim":    {"vim-language-server", "--stdio"},
	"YAML":   {"yaml-language-server", "--stdio"},
}

// They look every three seconds whether the process of "initialize" is there
// (vscode-languageserver, setupExitTimer).
const serversLook = 3 * time.Second

// Language servers live in a session of the editor whose process they watch, answer
// as long as it does, and end after it. One that is to watch a process which the
// session may not see ends at once: that is the control.
func TestLanguageServersLive(t *testing.T) {
	t.Parallel()
	harness.Require(t, "signals")
	stranger := exec.Command("sleep", "1000")
	harness.Must(t, stranger.Start())
	t.Cleanup(func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	})
	for i, language := range slices.Sorted(maps.Keys(languageServers)) {
		if !harness.Turn(t, i, len(languageServers)) {
			continue // they watch by the same package
		}
		server := languageServers[language]
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			harness.RequirePrograms(t, server[0])
			w := harness.NewWorld(t)
			block := harness.Sandbox{"toolchains": []string{"node", "python"}}
			harness.Write(t, w.UserSettings(), harness.Defaults(block))
			s := startServer(t, w, server)
			s.initialize(s.editor.Process.Pid)
			for end := time.Now().Add(3 * serversLook); time.Now().Before(end); {
				if !s.answers() {
					t.Fatalf("it has ended although the editor lives: %s", s.said.String())
				}
				time.Sleep(serversLook / 4)
			}
			harness.Must(t, unix.Kill(s.editor.Process.Pid, unix.SIGKILL))
			s.ends("the editor has ended")

			s = startServer(t, w, server)
			s.initialize(stranger.Process.Pid)
			s.ends("control: a process that is not the editor")
		})
	}
}

// languageServer runs in a session that a child of an editor has started.
type languageServer struct {
	t       *testing.T
	editor  *exec.Cmd
	in      interface{ Write([]byte) (int, error) }
	answer  chan int // ids of requests that were answered; closed at its end
	said    harness.Buffer
	request int
}

func startServer(t *testing.T, w *harness.World, server []string) *languageServer {
	t.Helper()
	s := &languageServer{t: t, answer: make(chan int, 64)}
	const editor = `exec 3<&0; "$@" <&3 3<&- & wait`
	args := append([]string{"-c", editor, "sh", harness.Binary(t), "exec", "--"}, server...)
	s.editor = exec.Command("/bin/sh", args...)
	s.editor.Dir, s.editor.Env = w.Project, append(harness.Environ(w), "PATH="+harness.SearchPath)
	s.editor.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := s.editor.StdinPipe()
	harness.Must(t, err)
	out, err := s.editor.StdoutPipe()
	harness.Must(t, err)
	s.in, s.editor.Stderr = in, &s.said
	harness.Must(t, s.editor.Start())
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_, _ = s.editor.Process.Wait() // an editor that nobody has waited for still exists
	}()
	t.Cleanup(func() {
		_ = unix.Kill(-s.editor.Process.Pid, unix.SIGKILL)
		<-waited
	})
	go func() {
		defer close(s.answer)
		reader := bufio.NewReader(out)
		for {
			var message struct {
				ID     *int   `json:"id"`
				Method string `json:"method"`
			}
			if err := (jsonrpc2.VSCodeObjectCodec{}).ReadObject(reader, &message); err != nil {
				return
			}
			if message.ID != nil && message.Method == "" {
				s.answer <- *message.ID
			}
		}
	}()
	return s
}

func (s *languageServer) send(body string) {
	_, _ = fmt.Fprintf(s.in, "Content-Length: %d\r\n\r\n%s", len(body), body) // it may have ended
}

// call sends a request, and reports whether there is an answer.
func (s *languageServer) call(method, params string) bool {
	s.t.Helper()
	s.request++
	s.send(`{"jsonrpc":"2.0","id":` + strconv.Itoa(s.request) + `,"method":"` + method + `","params":` + params + `}`)
	limit := deadline.After(time.Minute)
	for {
		select {
		case id, lives := <-s.answer:
			if !lives || id == s.request {
				return lives
			}
		case <-limit:
			s.t.Fatalf("no answer to %s: %s", method, s.said.String())
		}
	}
}

func (s *languageServer) initialize(pid int) {
	s.t.Helper()
	const params = `{"processId":%d,"rootUri":null,"workspaceFolders":null,"capabilities":{}}`
	if !s.call("initialize", fmt.Sprintf(params, pid)) {
		s.t.Fatalf("it does not start: %s", s.said.String())
	}
	s.send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
}

// answers asks for something that no server knows: each answers that with an error.
func (s *languageServer) answers() bool { return s.call("sidecar/lives", "{}") }

// ends waits until the server has ended.
func (s *languageServer) ends(why string) {
	s.t.Helper()
	limit := deadline.After(time.Minute)
	for {
		select {
		case _, lives := <-s.answer:
			if !lives {
				return
			}
		case <-limit:
			s.t.Fatalf("%s: it lives: %s", why, s.said.String())
		}
	}
}
