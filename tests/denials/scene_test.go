//go:build linux

package denials

import (
	"encoding/json"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// scene is a harness.Scene with the victim of tests/victim.
type scene struct{ *harness.Scene }

func newScene(t testing.TB) *scene {
	t.Helper()
	return &scene{harness.NewScene(t, "tests/victim")}
}

// newObservedScene is one on a machine that can observe denials.
func newObservedScene(t testing.TB) *scene {
	t.Helper()
	requireReports(t)
	return newScene(t)
}

// reports is what a sidecar says of denials on this machine, which does not change.
var reports struct {
	once sync.Once
	are  protocol.Protection
}

// requireReports skips a test if the machine cannot observe denials. One sidecar is
// asked, for all tests.
func requireReports(t testing.TB) {
	t.Helper()
	harness.Require(t, "filesystem")
	reports.once.Do(func() {
		reports.are = newScene(t).start(harness.Settings(nil), nil).Hello.Capabilities.Enforcement["denials"]
	})
	requireSeccomp(t, reports.are)
}

// in is the same scene for another test, which its methods then fail.
func (s *scene) in(t testing.TB) *scene {
	other := *s.Scene
	other.T = t
	return &scene{&other}
}

// target starts a process outside, for signals, and returns its id.
func (s *scene) target() (pid string) {
	s.T.Helper()
	command := exec.Command(s.Victim, "target", "secret")
	stdin, err := command.StdinPipe()
	if err != nil {
		s.T.Fatal(err)
	}
	if err := command.Start(); err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		stdin.Close()
	})
	return strconv.Itoa(command.Process.Pid)
}

// editor is one that gathers the denials that it gets.
type editor struct {
	*harness.Editor
	denials *harness.Denials
}

func (s *scene) start(settings string, wrap func(*exec.Cmd)) *editor {
	s.T.Helper()
	e := harness.Start(s.T, s.World, harness.Options{Settings: settings, Wrap: wrap})
	return &editor{e, harness.RecordDenials(e)}
}

// tool runs a command to its end. By then all its denials have been reported.
func (e *editor) tool(argv ...string) (session *harness.Session, status int, denials []protocol.DeniedParams) {
	session, status = e.Run(protocol.SpawnParams{Command: argv[0], Args: argv[1:]})
	return session, status, e.denials.Of(session.SessionID)
}

// find returns the denial of an access and a target, and how often it was
// reported.
func find(denials []protocol.DeniedParams, access, target string) (found protocol.DeniedParams, times int) {
	for _, p := range denials {
		if p.Access == access && p.Target == target {
			found = p
			times++
		}
	}
	return found, times
}

// paste adds a suggestion to settings, as a user would.
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

// listen makes a Unix socket of a server outside of every session.
func listen(t testing.TB, path string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
}

// shorter is a number of rounds, or a smaller one where tests repeat themselves less
// often.
func shorter(usual, short int) int {
	if testing.Short() {
		return short
	}
	return usual
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

// observed skips a test if the machine cannot observe denials.
func observed(t testing.TB, e *editor) {
	t.Helper()
	requireSeccomp(t, e.Hello.Capabilities.Enforcement["denials"])
}

func requireSeccomp(t testing.TB, denials protocol.Protection) {
	t.Helper()
	if !strings.Contains(denials.Mechanism, "seccomp") {
		harness.Skip(t, "user_notification", denials.Detail)
	}
}

// detached starts a command without a controlling terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
