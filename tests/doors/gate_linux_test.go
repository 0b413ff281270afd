package doors

import (
	"encoding/json"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// risk is something that a session is refused, and that nothing may suggest.
type risk struct {
	name, access string
	// target is what is refused, and line what a session tries, given its path.
	target, line string
	extra        harness.Sandbox
	// care is part of what everybody is told who asks for advice.
	care string
	// step is true for what some people need. The step is said beside the care.
	step bool
}

// risks has one row for each kind of place. PATH in a line is the target. The
// last row is the control: it is suggested everywhere.
func risks() []risk {
	offline := harness.Sandbox{"allow_network": false}
	return []risk{
		{name: "a start-up file", access: "write", target: "~/.bashrc", line: `echo x >>PATH`, care: "shells"},
		{
			name: "an agent's state", access: "write", target: "~/.codex/config.toml", line: `echo x >>PATH`,
			care: "Codex",
		},
		{name: "a key", access: "read", target: "~/.ssh/id_ed25519", line: `cat PATH`, care: "SSH keys"},
		{name: "a password", access: "read", target: "~/.kube/config", line: `cat PATH`, care: "Kubernetes"},
		{
			name: "a hook of another repository", access: "write", target: "OUTSIDE/repository/.git/hooks/pre-commit",
			line: `echo x >>PATH`, care: "git",
		},
		{
			name: "a container engine's socket", access: "connect_unix", target: "~/.docker/run/docker.sock",
			line: `./victim connect PATH`, care: "container", step: true,
		},
		{
			name: "a cloud's credentials", access: "connect", target: "169.254.169.254:80",
			extra: offline, line: `bash -c "exec 3<>/dev/tcp/169.254.169.254/80"`,
			care: "credentials", step: true,
		},
		{
			name: "a name", access: "connect", target: "192.0.2.53:53", extra: offline,
			line: `./victim connect-to PATH`, care: "allowed_hosts", step: true,
		},
		{
			name: "a name by TCP", access: "connect", target: "192.0.2.53:53", extra: offline,
			line: `bash -c "exec 3<>/dev/tcp/192.0.2.53/53"`, care: "allowed_hosts", step: true,
		},
		{
			name: "a name by multicast", access: "connect", target: "224.0.0.251:5353", extra: offline,
			line: `./victim send-to PATH`, care: "single hosts", step: true,
		},
		{
			name: "an address to listen at", access: "bind", target: "192.0.2.1:8080", extra: offline,
			line: `./victim bind-to PATH`, care: "the whole network", step: true, // learn repeats the settings
		},
		{name: "control: a file", access: "read", target: "OUTSIDE/file", line: `cat PATH`},
	}
}

// adviser is a way to get advice. It returns all that is said.
type adviser struct {
	name string
	ask  func(s *scene, r risk, line string) (said string)
}

var advisers = []adviser{
	{"exec", func(s *scene, r risk, line string) string { return s.says("exec", "--", "sh", "-c", line) }},
	{"allow", func(s *scene, r risk, line string) string {
		s.says("exec", "--", "sh", "-c", line)
		return s.says("allow")
	}},
	{"explain", func(s *scene, r risk, line string) string { return s.says("explain", r.access, r.target) }},
	{"explain --json", func(s *scene, r risk, line string) string {
		return s.says("explain", "--json", r.access, r.target)
	}},
	{"learn", func(s *scene, r risk, line string) string { return s.says("learn", "--", "sh", "-c", line) }},
	{"acp", func(s *scene, r risk, line string) string { return s.says("acp", "--", "sh", "-c", line) }},
	{"a denial in an editor, which Allow takes up", (*scene).denied},
	{"a question to an editor", (*scene).asked},
	{"mcp run", func(s *scene, r risk, line string) string {
		return s.tool("run", map[string]any{"command": line, "cwd": s.cwd})
	}},
	{"mcp explain", func(s *scene, r risk, line string) string {
		return s.tool("explain", map[string]any{"access": r.access, "target": r.target})
	}},
}

// steps are what a suggestion names.
var steps = regexp.MustCompile(`additional_|allowed_unix_sockets|allowed_hosts|allow_network|protected_paths`)

// everything is the advice to open the whole network, in words, as a suggestion to
// an editor, and in a block of settings.
var everything = regexp.MustCompile(`set \\?"allow_network\\?"|"allow_network",\s*"value"|"allow_network":\s*true`)

// TestDoors_NoneSuggestsWhatOpensMore asks for advice about each risk in each
// way. Nothing suggests it without the care that it needs. Risks take turns
// with ways: each turn has three or four ways for a risk, and of a way three or
// four risks and the control.
func TestDoors_NoneSuggestsWhatOpensMore(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets", "network_hosts")
	rows := risks()
	for i, r := range rows {
		for j, way := range advisers {
			if control := i == len(rows)-1; !control && !harness.Turn(t, i+j, turns) {
				continue
			}
			t.Run(r.name+", "+way.name, func(t *testing.T) {
				t.Parallel()
				s := newScene(t, situation{extra: r.extra})
				r := s.place(r)
				said := harness.Unfold(way.ask(s, r, strings.ReplaceAll(r.line, "PATH", harness.Quote(r.target))))
				suggests := steps.MatchString(said)
				switch {
				case i == len(rows)-1:
					if !suggests {
						t.Errorf("control: nothing is suggested:\n%s", said)
					}
				case suggests && !r.step && !strings.HasPrefix(way.name, "explain"):
					harness.Breach(t, "it is suggested:\n%s", said)
				case everything.MatchString(said) && (r.access != "bind" || !strings.HasPrefix(way.name, "explain")):
					harness.Breach(t, "the whole network is suggested:\n%s", said)
				case !strings.Contains(said, r.care):
					harness.Breach(t, "%q is not said:\n%s", r.care, said)
				}
			})
		}
	}
}

// place makes what a risk is about.
func (s *scene) place(r risk) risk {
	if rest, home := strings.CutPrefix(r.target, "~/"); home {
		r.target = s.HomePath(rest)
	}
	if rest, outside := strings.CutPrefix(r.target, "OUTSIDE/"); outside {
		r.target = s.OutsidePath(rest)
	}
	harness.Victim(s.t, "tests/victim", s.ProjectPath("victim"))
	switch r.access {
	case "connect", "bind":
	case "connect_unix":
		harness.MakeDir(s.t, filepath.Dir(r.target))
		listener, err := net.Listen("unix", r.target)
		harness.Must(s.t, err)
		s.t.Cleanup(func() { listener.Close() })
	default:
		harness.Write(s.t, r.target, "content\n")
	}
	return r
}

// says runs a subcommand, and returns all of its output.
func (s *scene) says(name string, args ...string) string {
	command := s.start(harness.Binary(s.t), append([]string{name}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		s.t.Logf("%s: %v", command, err)
	}
	return string(out)
}

// denied runs a line as an editor's tool, and returns what the editor gets to
// know of the denial.
func (s *scene) denied(r risk, line string) string { return s.editor(r, line, false) }

// asked is denied, with questions, which are answered with no.
func (s *scene) asked(r risk, line string) string { return s.editor(r, line, true) }

func (s *scene) editor(r risk, line string, ask bool) string {
	s.t.Helper()
	block := harness.Sandbox{}
	for key, value := range r.extra {
		block[key] = value
	}
	if ask {
		block["on_denied"] = "ask"
	}
	e := harness.Start(s.t, s.World, harness.Options{
		Settings:   harness.Defaults(block),
		Initialize: func(p *protocol.InitializeParams) { p.Capabilities.Approvals = ask },
	})
	denials := harness.RecordDenials(e)
	var questions harness.Buffer
	client.OnRequest(
		e.Client, protocol.RequestAccess, func(p protocol.RequestAccessParams) protocol.RequestAccessResult {
			text, _ := json.Marshal(p)
			_, _ = questions.Write(append(text, '\n'))
			return protocol.RequestAccessResult{Decision: protocol.DecisionDeny}
		})
	session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line})
	session.Exit()
	var found []byte
	harness.Eventually(s.t, "a report about "+r.target, func() bool {
		for _, d := range denials.Of(session.SessionID) {
			if d.Target == r.target {
				found, _ = json.Marshal(d)
			}
		}
		return found != nil
	})
	return string(found) + "\n" + questions.String()
}

// tool has an agent use a tool.
func (s *scene) tool(name string, arguments map[string]any) (said string) {
	return s.tools(name, arguments)[0]
}

// tools has an agent use a tool with each of some arguments.
func (s *scene) tools(name string, each ...map[string]any) (said []string) {
	command := s.start(harness.BinaryWithMCP(s.t), "mcp")
	agent := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := agent.Connect(s.t.Context(), &mcp.CommandTransport{Command: command}, nil)
	harness.Must(s.t, err)
	defer session.Close()
	for _, arguments := range each {
		got, err := session.CallTool(s.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
		harness.Must(s.t, err)
		text := ""
		for _, content := range got.Content {
			text += content.(*mcp.TextContent).Text + "\n"
		}
		said = append(said, text)
	}
	return said
}
