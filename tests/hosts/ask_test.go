//go:build linux

package hosts

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	editor "github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// asked is an editor whose user is asked about hosts.
type asked struct {
	*harness.Editor
	denials   *harness.Denials
	mu        sync.Mutex // guards the fields below
	questions []protocol.RequestAccessParams
	withdrawn []string // ids
}

// ask starts an editor whose user answers with answer, which may take its time.
func (s *scene) ask(settings harness.Sandbox, answer func(target string) protocol.Decision) *asked {
	s.T.Helper()
	harness.Require(s.T, "network_hosts")
	block := harness.Sandbox{"allow_network": false, "on_denied": "ask"}
	for key, value := range settings {
		block[key] = value
	}
	e := harness.Start(s.T, s.World, harness.Options{
		Settings: harness.Settings(block), Wrap: s.Wrap,
		Initialize: func(p *protocol.InitializeParams) { p.Capabilities.Approvals = true },
	})
	a := &asked{Editor: e, denials: harness.RecordDenials(e)}
	editor.OnRequest(
		a.Client, protocol.RequestAccess, func(p protocol.RequestAccessParams) protocol.RequestAccessResult {
			a.mu.Lock()
			if p.Access == "connect" {
				a.questions = append(a.questions, p)
			}
			a.mu.Unlock()
			if p.Access != "connect" {
				return protocol.RequestAccessResult{Decision: protocol.DecisionDeny}
			}
			return protocol.RequestAccessResult{Decision: answer(p.Target)}
		})
	editor.On(a.Client, protocol.CancelRequest, func(p protocol.CancelParams) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.withdrawn = append(a.withdrawn, string(p.ID))
	})
	return a
}

// awaitWithdrawn waits until the sidecar has withdrawn just these requests.
func (a *asked) awaitWithdrawn(t *testing.T, want ...string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("the questions %v are withdrawn", want), func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return slices.Equal(a.withdrawn, want)
	})
}

func (a *asked) all() []protocol.RequestAccessParams {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.questions)
}

// targets are what the user was asked about, in order.
func (a *asked) targets() string {
	var list []string
	for _, q := range a.all() {
		list = append(list, q.Target)
	}
	return strings.Join(list, " ")
}

func always(decision protocol.Decision) func(string) protocol.Decision {
	return func(string) protocol.Decision { return decision }
}

// only allows these targets, once.
func only(targets ...string) func(string) protocol.Decision {
	return func(target string) protocol.Decision {
		if slices.Contains(targets, target) {
			return protocol.DecisionOnce
		}
		return protocol.DecisionDeny
	}
}

// A program waits in connect(2) until the user has decided, whether the settings
// allow some hosts or none. Nobody looks the name up before.
func TestAsk_ConnectsBecauseTheUserSaysSo(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"some", "none"} {
		if !harness.Turn(t, i, 2) {
			continue
		}
		var settings harness.Sandbox
		if name == "some" {
			settings = harness.Sandbox{"allowed_hosts": []string{"allowed.example"}}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			early := ""
			e := s.ask(settings, func(target string) protocol.Decision {
				if target != "api.allowed.example:80" {
					return protocol.DecisionDeny
				}
				early = strings.Join(s.asked(), " ")
				return protocol.DecisionOnce
			})
			if got := s.victim(e.Editor, "v6 api.allowed.example:80"); got != "hello from 93.184.216.34" ||
				early != "" {
				harness.Breach(t, "%s; looked up before the answer: %q", got, early)
			}
			if got := s.victim(e.Editor, "connect evil.example:80"); got != "EACCES" {
				harness.Breach(t, "what the user refuses: %s", got)
			}
			if names := s.asked(); !slices.Equal(names, []string{"api.allowed.example"}) {
				t.Errorf("looked up %q", names)
			}
			denial := awaitDenial(t, e.denials, "evil.example:80")
			if program(denial) != "victim" || denial.Suggestion == nil || denial.Suggestion.Setting != "allowed_hosts" {
				t.Errorf("%+v", denial)
			}
			q := e.all()
			want := []protocol.Decision{"deny", "once", "session", "project", "user"}
			if len(q) != 2 || q[0].Target != "api.allowed.example:80" || q[0].Process == nil ||
				q[0].Process.Name != "victim" || !slices.Equal(q[0].Choices, want) || q[0].Suggestion == nil ||
				q[0].Message != `"victim" wants to connect to "api.allowed.example:80", and waits for your answer.` {
				t.Errorf("asked %+v", q)
			}
			e.awaitWithdrawn(t) // nothing that was answered
		})
	}
}

// An answer for the session is not asked for again, a no neither.
func TestAsk_RemembersAnswers(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.ask(nil, func(target string) protocol.Decision {
		if target == "allowed.example:80" {
			return protocol.DecisionSession
		}
		return protocol.DecisionDeny
	})
	three := func(target string) string {
		return fmt.Sprintf("sh -c 'for i in 1 2 3; do %s connect %s; done'", s.Victim, target)
	}
	if got := s.run(e.Editor, three("allowed.example:80")); got != "connected\nconnected\nconnected" {
		t.Error(got)
	}
	if got := s.run(e.Editor, three("evil.example:80")); got != "EACCES\nEACCES\nEACCES" {
		t.Error(got)
	}
	if got := s.victim(e.Editor, "connect allowed.example:80"); got != "connected" {
		harness.Breach(t, "another session: %s", got)
	}
	if got, want := e.targets(), "allowed.example:80 evil.example:80 allowed.example:80"; got != want {
		t.Errorf("asked about %q, want %q", got, want)
	}
}

// Connections to one host make one question, and hold nobody up that needs no
// answer.
func TestAsk_OnceForManyConnections(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	release := make(chan protocol.Decision)
	settings := harness.Sandbox{
		"allowed_hosts": []string{"allowed.example"},
		"limits":        harness.Sandbox{"connections": 1024}, // a quarter of which may wait for the answer
	}
	e := s.ask(settings, func(string) protocol.Decision { return <-release })
	crowd := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: s.Project, Command: s.Victim + " crowd evil.example:80 100 & " + s.Victim +
			" connect allowed.example:80; cat /etc/hostname >/dev/null && echo others; wait",
	})
	crowd.Await(`connected\s+others`)
	release <- protocol.DecisionSession
	crowd.Await(`50 connected, 0 refused`)
	if got := e.targets(); got != "evil.example:80" {
		t.Errorf("asked about %q", got)
	}
	refused := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: s.Project, Command: s.Victim + " crowd evil.example:80 100",
	})
	release <- protocol.DecisionDeny
	refused.Await(`0 connected, (\d+) refused`)
	if got := e.targets(); got != "evil.example:80 evil.example:80" {
		t.Errorf("asked about %q", got)
	}
}

// "Once" is one connection. The others that wait are asked about next.
func TestAsk_OnceIsOneConnection(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	answers := make(chan protocol.Decision)
	e := s.ask(nil, func(string) protocol.Decision { return <-answers })
	const clients, once = 20, 3
	crowd := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: s.Project,
		Command: fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s connect evil.example:80 & i=$((i+1)); done; wait", clients,
			s.Victim),
	})
	for range once {
		answers <- protocol.DecisionOnce
	}
	answers <- protocol.DecisionDeny
	crowd.Exit()
	connected, refused := strings.Count(crowd.Output(), "connected"), strings.Count(crowd.Output(), "EACCES")
	if connected != once || connected+refused != clients {
		harness.Breach(t, "%d answers for once made %d connections, and %d were refused: %s", once, connected, refused,
			crowd.Output())
	}
	if got := len(e.all()); got != once+1 {
		t.Errorf("asked %d times", got)
	}
}

// A caller in non-blocking mode goes on while the user decides. Nothing of what
// it sends reaches the host before.
func TestAsk_DoesNotHoldNonBlockingCallers(t *testing.T) {
	t.Parallel()
	for decision, want := range map[protocol.Decision]string{
		protocol.DecisionOnce: "begun\nhello from 93.184.216.34", protocol.DecisionDeny: "begun\nECONNRESET",
	} {
		t.Run(string(decision), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			release := make(chan protocol.Decision)
			e := s.ask(nil, func(string) protocol.Decision { return <-release })
			session := e.Spawn(protocol.SpawnParams{
				Kind: protocol.Tool, Cwd: s.Project, Command: s.Victim + " eager evil.example:80",
			})
			session.Await("begun")
			if visits := s.visits(); visits != "" {
				harness.Breach(t, "visited before the answer: %s", visits)
			}
			release <- decision
			session.Exit()
			if got := strings.TrimSpace(session.Output()); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			if (s.visits() != "") != (decision == protocol.DecisionOnce) {
				harness.Breach(t, "visited: %s", s.visits())
			}
		})
	}
}

// A signal ends the wait, with or without a handler, and nobody is asked for a
// program that is gone: the editor is told to close the question.
func TestAsk_IsOverWhenTheProgramIs(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"connect", "eager"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			never := make(chan struct{})
			e := s.ask(nil, func(string) protocol.Decision {
				<-never
				return protocol.DecisionSession
			})
			defer close(never)
			terminal := e.Shell()
			for i := range 2 {
				terminal.Type(fmt.Sprintf("trap 'echo inter''rupted %d' INT; %s %s evil.example:80\n", i,
					s.Victim, action))
				// The second would join the question of the first, if that were
				// open.
				harness.Eventually(t, "it asks", func() bool {
					return len(e.all()) == i+1 &&
						(action == "connect" || strings.Count(terminal.Output(), "begun") == i+1)
				})
				terminal.Type("\x03")
				terminal.Await(fmt.Sprintf("interrupted %d", i))
				e.awaitWithdrawn(t, []string{"1", "2"}[:i+1]...)
			}
			terminal.Type(s.Victim + " " + action + " evil.example:80\n")
			harness.Eventually(t, "it asks", func() bool { return len(e.all()) == 3 })
			terminal.Close(0)
			e.awaitWithdrawn(t, "1", "2", "3")
		})
	}
}

// Ctrl-C ends a connect(2) that is held because the host does not answer.
func TestConnect_HeldBySilenceEndsWithCtrlC(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.ask(nil, always(protocol.DecisionOnce))
	terminal := e.Shell()
	// The program may see EINTR, and end by itself, before the signal ends it.
	terminal.Type(fmt.Sprintf("trap 'echo inter''rupted' INT; %s connect allowed.example:81; echo inter''rupted\n",
		s.Victim))
	harness.Eventually(t, "the host is dialled", func() bool { return slices.Contains(s.asked(), "allowed.example") })
	terminal.Type("\x03")
	terminal.Await("interrupted")
	if output := terminal.Output(); strings.Contains(output, "ETIMEDOUT") {
		t.Errorf("it was not interrupted: %s", output)
	}
	terminal.Close(0)
}

// A signal with a handler interrupts connect(2), which then goes on.
func TestAsk_GoesOnAfterAHandledSignal(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	release := make(chan struct{})
	e := s.ask(nil, func(string) protocol.Decision {
		<-release
		return protocol.DecisionOnce
	})
	session := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Cwd: s.Project, Command: s.Victim + " interrupted evil.example:80",
	})
	session.Await("EINTR EISCONN")
	close(release)
	session.Exit()
}

// A name that leads into a private network needs an answer about the address,
// too.
func TestAsk_AboutThePrivateAddressOfAName(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.ask(nil, only("private.example:80", "10.9.8.7:80", "rebound.example:80", "metadata.example:80"))
	for line, want := range map[string]string{
		"v6 private.example:80": "hello from 10.9.8.7", "v6 10.9.8.7:80": "hello from 10.9.8.7",
		"connect rebound.example:80": "EACCES", "connect metadata.example:80": "EACCES",
		"connect 10.9.8.7:81":        "EACCES",
		"connect 169.254.169.254:80": "EACCES", "connect 93.184.216.34:80": "EACCES",
		"connect missing.example:80": "EACCES",
	} {
		if got := s.victim(e.Editor, line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	told := 0
	for _, q := range e.all() {
		if q.Target == "10.9.8.7:80" &&
			strings.Contains(q.Message, `"10.9.8.7:80" (the address of "private.example")`) {
			told++
		}
	}
	if told != 1 {
		t.Errorf("asked %+v", e.all())
	}
	got := strings.Fields(e.targets())
	slices.Sort(got)
	if want := []string{
		"10.9.8.7:80", "10.9.8.7:80", "10.9.8.7:81", "93.184.216.34:80", "metadata.example:80", "missing.example:80",
		"private.example:80", "rebound.example:80",
	}; !slices.Equal(got, want) {
		t.Errorf("asked about %q, want %q", got, want)
	}
}

// Denied hosts, and servers that TLS asks for behind an allowed host, are
// refused without a question.
func TestAsk_NotAboutWhatIsDenied(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.ask(harness.Sandbox{
		"allowed_hosts": []string{"allowed.example"}, "denied_hosts": []string{"evil.example", "10.9.8.0/24"},
	}, always(protocol.DecisionSession))
	for line, want := range map[string]string{
		"connect evil.example:80": "EACCES", "connect 10.9.8.7:80": "EACCES",
		"tls allowed.example:443 api.allowed.example": "ECONNRESET",
	} {
		if got := s.victim(e.Editor, line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	if got := e.targets(); got != "" {
		t.Errorf("asked about %q", got)
	}
	// The control: such an editor is asked about other hosts, and TLS to them
	// works in the session that was allowed them.
	line := fmt.Sprintf("sh -c '%s connect api.allowed.example:443; %s tls allowed.example:443 api.allowed.example'",
		s.Victim, s.Victim)
	if got := s.run(e.Editor, line); got != "connected\nconnected" || e.targets() != "api.allowed.example:443" {
		t.Errorf("control: %s, asked about %q", got, e.targets())
	}
}

// A permanent answer is written to the settings that the user chose, and counts
// for later sessions.
func TestAsk_WritesAPermanentAnswer(t *testing.T) {
	t.Parallel()
	for i, scope := range []protocol.Decision{protocol.DecisionProject, protocol.DecisionUser} {
		if !harness.Turn(t, i, 2) {
			continue
		}
		t.Run(string(scope), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			e := s.ask(harness.Sandbox{"allowed_hosts": []string{"api.allowed.example"}}, always(scope))
			file := s.UserSettings()
			if scope == protocol.DecisionProject {
				file = filepath.Join(s.Project, ".zed", "settings.json")
			}
			for _, target := range []string{"allowed.example:80", "allowed.example:80", "api.allowed.example:80"} {
				if got := s.victim(e.Editor, "connect", target); got != "connected" {
					t.Errorf("%s: %s", target, got)
				}
			}
			if got := e.targets(); got != "allowed.example:80" {
				t.Errorf("asked about %q", got)
			}
			var written struct {
				Terminal struct {
					Sandbox struct {
						Hosts []string `json:"allowed_hosts"`
					}
				}
			}
			text := harness.Read(t, file)
			if err := json.Unmarshal([]byte(text), &written); err != nil ||
				!slices.Equal(written.Terminal.Sandbox.Hosts, []string{"api.allowed.example", "allowed.example:80"}) {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}

// An editor without questions, and one whose user does not answer in time, have
// refused.
func TestAsk_RefusesWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	e := s.start(harness.Sandbox{
		"allow_network": false, "on_denied": "ask", "allowed_hosts": []string{"allowed.example"},
	})
	if got := s.victim(e, "connect evil.example:80"); got != "EACCES" {
		t.Error(got)
	}
	decisions := make(chan protocol.Decision, 1)
	a := s.ask(nil, func(string) protocol.Decision { return <-decisions })
	for i, decision := range []protocol.Decision{"", "yes", "DENY"} {
		decisions <- decision
		want := strings.TrimSpace(strings.Repeat("evil.example:80 ", i+1))
		if got := s.victim(a.Editor, "connect evil.example:80"); got != "EACCES" || a.targets() != want {
			t.Errorf("%q: %s, asked about %q", decision, got, a.targets())
		}
	}
}

// In the user's own terminal exec asks, and connects after the answer: to
// programs in blocking mode and to others. Each answer has its turn with each
// of them.
func TestExec_AsksAboutHosts(t *testing.T) {
	t.Parallel()
	harness.Require(t, "network_hosts")
	for i, action := range []string{"v6", "eager"} {
		for j, typed := range []string{"once", "deny", "", "project"} {
			if !harness.Turn(t, i+j, 2) {
				continue
			}
			allowed := typed == "once" || typed == "project"
			t.Run(action+" "+typed, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				file := s.ProjectPath("settings.json")
				harness.Write(t, file, harness.Settings(harness.Sandbox{"allow_network": false, "on_denied": "ask"}))
				command := exec.Command(harness.Binary(t), "exec", "--project", s.Project, "--settings", file, "--",
					s.Victim, action, "evil.example:80")
				command.Env, command.Dir = harness.Environ(s.World), s.Project
				s.Wrap(command)
				terminal := harness.StartTerminal(t, command)
				terminal.Await(`"victim" wants to connect to "evil.example:80", and waits`)
				terminal.Await(`or user \(Enter denies\): `)
				terminal.Type(typed + "\n")
				terminal.Status()
				screen := terminal.Screen.String()
				written := harness.Read(t, s.ProjectPath(".zed/settings.json"))
				if strings.Contains(screen, "hello from") != allowed ||
					strings.Contains(written, `"evil.example:80"`) != (typed == "project") {
					t.Errorf("settings %q\n%s", written, screen)
				}
				refusal := map[string]string{"v6": "EACCES", "eager": "ECONNRESET"}[action]
				if !allowed && (!strings.Contains(screen, refusal) ||
					!strings.Contains(screen, `add "evil.example:80" to "allowed_hosts"`)) {
					t.Error(screen)
				}
			})
		}
	}
}

// The same questions come where sessions have no network of their own.
func TestShared_AsksAboutHosts(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	e := s.ask(nil, only("allowed.example:80"))
	for line, want := range map[string]string{
		"v6 allowed.example:80": "hello from 93.184.216.34", "connect evil.example:80": "EACCES",
		"connect 93.184.216.34:80": "EACCES",
	} {
		if got := s.victim(e.Editor, line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	got := strings.Fields(e.targets())
	slices.Sort(got)
	if want := []string{"93.184.216.34:80", "allowed.example:80", "evil.example:80"}; !slices.Equal(got, want) {
		t.Errorf("asked about %q, want %q", got, want)
	}
}
