//go:build unix

package agents

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// mcpServer answers each line as a server of MCP does, and tries to read a file. It
// says on its standard error what it does.
const mcpServer = `while IFS= read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  printf '{"jsonrpc":"2.0","id":%s,"result":{"serverInfo":{"name":"server"}}}\n' "$id"
  echo served >&2
done
cat "$1" >&2
echo end >&2`

// framed is a message of the Language Server Protocol.
func framed(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }

// pipeServer is a server that an editor runs by pipes.
type pipeServer struct {
	needs  string // a program that must be there
	argv   []string
	input  string
	answer string // a pattern
	stderr string // its lines; "" if it does not end with its input
}

// pipeServers are servers, by what they are.
func pipeServers(victim, secret string) map[string]pipeServer {
	const initialize = `{"jsonrpc":"2.0","id":7,"method":"initialize","params":%s}`
	return map[string]pipeServer{
		"agent": {
			argv:   []string{"/bin/sh", "-c", `"$1"; echo end >&2`, "agent", victim},
			input:  fmt.Sprintf(initialize, `{"protocolVersion":1}`) + "\n",
			answer: `(?m)^\{"id":7,"jsonrpc":"2.0","result":\{.*"protocolVersion":1`, stderr: "end\n",
		},
		"MCP": {
			argv:  []string{"/bin/sh", "-c", mcpServer, "server", secret},
			input: fmt.Sprintf(initialize, `{}`) + "\n", answer: `^\{"jsonrpc":"2.0","id":7,"result":.*\}\n$`,
			stderr: "served\nend\n",
		},
		"language server": {
			needs: "bash-language-server", argv: []string{"bash-language-server", "start"},
			input:  framed(fmt.Sprintf(initialize, `{"processId":null,"rootUri":null,"capabilities":{}}`)),
			answer: `"id":7,"result":\{"capabilities"`,
		},
	}
}

// An editor runs a server that speaks a protocol by pipes: its messages arrive as
// they are, and its errors are apart. It is confined as any command: without the
// sandbox the server of MCP reads the file. With a group it ends just so.
func TestPipes_AnEditorRunsServers(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for name, server := range pipeServers("", "") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if server.needs != "" {
				harness.RequirePrograms(t, server.needs)
			}
			runPipeServer(t, name, harness.Off(), "own")
			settings := harness.Defaults(harness.Sandbox{"toolchains": []string{"node"}})
			runPipeServer(t, name, settings, "own", "servers")
		})
	}
}

// runPipeServer runs a server in each of some groups.
func runPipeServer(t *testing.T, name, settings string, groups ...string) {
	t.Helper()
	w := harness.NewWorldOutsideDefaults(t)
	victim, secret := filepath.Join(w.Project, "agent"), filepath.Join(w.Outside, "secret")
	harness.Victim(t, "tests/agents/victim", victim)
	harness.Write(t, secret, "SECRET\n")
	server, confined := pipeServers(victim, secret)[name], settings != harness.Off()
	e := harness.Start(t, w, harness.Options{Settings: settings, Env: []string{"PATH=" + harness.SearchPath}})
	for _, group := range groups {
		if group != "own" && !e.Hello.Capabilities.Groups {
			continue
		}
		s := e.Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Command: server.argv[0], Args: server.argv[1:],
			Pipe: true, Stdin: true, Stderr: true, Group: group,
		})
		if s.Sandbox.Applied != confined {
			t.Fatalf("%s: sandboxed: %t", group, s.Sandbox.Applied)
		}
		s.Type(server.input)
		s.Await(server.answer)
		if server.stderr == "" {
			s.Close(0)
			continue
		}
		harness.Notify(e, protocol.Input, protocol.InputParams{SessionID: s.SessionID, CloseStdin: true})
		if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != 0 {
			t.Errorf("%s: it ended by %+v", group, exit)
		}
		for line := range strings.Lines(server.stderr) {
			if !strings.Contains(s.Stderr(), line) {
				t.Errorf("%s: its errors lack %q: %s", group, line, s.Stderr())
			}
		}
		switch read := strings.Contains(s.Stderr(), "SECRET"); {
		case read && confined:
			harness.Breach(t, "%s: a server has read %s", group, secret)
		case !read && !confined && name == "MCP":
			t.Errorf("control: it has not read %s: %s", secret, s.Stderr())
		}
	}
}
