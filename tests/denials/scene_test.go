//go:build linux

package denials

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// scene is a world with the victim in its project.
type scene struct {
	*harness.World
	t      testing.TB
	victim string
}

func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{World: harness.NewWorld(t), t: t}
	s.victim = filepath.Join(s.Project, "victim")
	harness.Victim(t, "tests/victim", s.victim)
	return s
}

// newObservedScene is one on a machine that tells of denials.
func newObservedScene(t testing.TB) *scene {
	t.Helper()
	harness.Require(t, "filesystem")
	s := newScene(t)
	observed(t, s.start(harness.Settings(nil), nil))
	return s
}

// target starts a process outside, for signals, and returns its number.
func (s *scene) target() (pid string) {
	s.t.Helper()
	command := exec.Command(s.victim, "target", "secret")
	stdin, err := command.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		stdin.Close()
	})
	return strconv.Itoa(command.Process.Pid)
}

func (s *scene) outside(name string) string { return filepath.Join(s.Outside, name) }

// editor is one that keeps what it is told.
type editor struct {
	*harness.Editor
	mu     sync.Mutex // guards denied
	denied []protocol.DeniedParams
}

func (s *scene) start(settings string, wrap func(*exec.Cmd)) *editor {
	s.t.Helper()
	e := &editor{Editor: harness.Start(s.t, s.World, harness.Options{Settings: settings, Wrap: wrap})}
	e.listen()
	return e
}

func (e *editor) listen() {
	client.On(e.Client, protocol.Denied, func(p protocol.DeniedParams) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.denied = append(e.denied, p)
	})
}

// tool runs a command to its end, after which everything of it has been told.
func (e *editor) tool(argv ...string) (session *harness.Session, status int, denials []protocol.DeniedParams) {
	session = e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: argv[0], Args: argv[1:]})
	status = -1
	if exit := session.Exit(); exit.ExitCode != nil {
		status = *exit.ExitCode
	}
	return session, status, e.denialsOf(session.SessionID)
}

// told is what one session was refused.
func (e *editor) denialsOf(id string) []protocol.DeniedParams {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []protocol.DeniedParams
	for _, p := range e.denied {
		if p.SessionID == id {
			list = append(list, p)
		}
	}
	return list
}

// find is the one denial of that kind and target.
func find(denials []protocol.DeniedParams, access, target string) (found protocol.DeniedParams, times int) {
	for _, p := range denials {
		if p.Access == access && p.Target == target {
			found = p
			times++
		}
	}
	return found, times
}

// paste puts a suggestion into a block of settings, as a user would.
func paste(t testing.TB, block harness.Sandbox, s *protocol.Suggestion) harness.Sandbox {
	t.Helper()
	var value any
	if err := json.Unmarshal(s.Value, &value); err != nil {
		t.Fatalf("%s: %v", s.Value, err)
	}
	pasted := harness.Sandbox{}
	for key, old := range block {
		pasted[key] = old
	}
	if text, entry := value.(string); entry {
		list, _ := pasted[s.Setting].([]string)
		pasted[s.Setting] = append(append([]string{}, list...), text)
	} else {
		pasted[s.Setting] = value
	}
	return pasted
}

// opened asks of each access and target whether the settings allow it, and
// lists those that do.
func (e *editor) opened(s *scene, targets map[string][]string) map[string]bool {
	open := map[string]bool{}
	for access, list := range targets {
		for _, target := range list {
			if harness.Call(e.Editor, protocol.PolicyExplain, protocol.PolicyExplainParams{
				ProjectDir: s.Project, Kind: protocol.Tool, Access: protocol.Access(access), Target: target,
			}).Allowed {
				open[access+" "+target] = true
			}
		}
	}
	return open
}

// listen makes a Unix socket that somebody outside of every session waits at.
func listen(t testing.TB, path string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
}

// ownAddress is an address of this machine that is not the loopback
// interface's.
func ownAddress(t testing.TB) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	harness.Skip(t, "ipv4", "no interface but the loopback interface has an address")
	return ""
}

// shortDir is a directory whose name leaves room in the address of a socket. No
// settings of these tests grant it.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "de-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// observed skips a test where nothing that is refused can be seen.
func observed(t testing.TB, e *editor) {
	t.Helper()
	if p := e.Hello.Capabilities.Enforcement["denials"]; !strings.Contains(p.Mechanism, "seccomp") {
		harness.Skip(t, "user_notification", p.Detail)
	}
}

// detached starts a command without a controlling terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
