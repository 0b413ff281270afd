//go:build linux

package denials

import (
	"crypto/ed25519"
	"crypto/rand"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// keyOfAgent starts an agent with one key. It returns the entries of
// the environment, and the key's fingerprint. The public key is in the project.
func (s *scene) keyOfAgent(t *testing.T) (env []string, fingerprint string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	harness.Must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	harness.Must(t, err)
	keyring := agent.NewKeyring()
	harness.Must(t, keyring.Add(agent.AddedKey{PrivateKey: private, Comment: "me@here"}))
	socket := filepath.Join(harness.ShortDir(t), "agent") // a socket's path is short
	listener, err := net.Listen("unix", socket)
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keyring, c) }()
		}
	}()
	harness.Write(t, s.ProjectPath("key.pub"), string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	env = []string{"SSH_AUTH_SOCK=" + socket, "XDG_RUNTIME_DIR=" + harness.ShortDir(t)}
	return env, ssh.FingerprintSHA256(signer.PublicKey())
}

// The editor is asked about each use of a key, whatever on_denied says, and the
// answer counts. A question about a client that is gone is withdrawn.
func TestUsesOfKeysAreAskedFor(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets")
	harness.RequirePrograms(t, "ssh-add")
	const twice = "ssh-add -T key.pub && echo one; ssh-add -T key.pub && echo two; true"
	for name, test := range map[string]struct {
		decision      protocol.Decision
		signs         string
		asked, denied int
	}{
		"once":              {protocol.DecisionOnce, "one two", 2, 0},
		"session":           {protocol.DecisionSession, "one two", 1, 0},
		"no":                {protocol.DecisionDeny, "", 1, 2},
		"for the project":   {protocol.DecisionProject, "", 1, 2}, // which was not offered
		"what is not known": {"yes", "", 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			env, key := s.keyOfAgent(t)
			settings := harness.Sandbox{
				"on_denied": "report", "toolchains": []string{"ssh"}, "signing_keys": []string{"ask:" + key},
			}
			e := s.ask(settings, always(test.decision), env...)
			session, _, _ := e.tool("sh", "-c", twice)
			signs := slices.DeleteFunc(strings.Fields(session.Output()), func(word string) bool {
				return word != "one" && word != "two"
			})
			questions := e.all()
			if got := strings.Join(signs, " "); got != test.signs || len(questions) != test.asked {
				t.Errorf("signed %q, asked %+v:\n%s", got, questions, session.Output())
			}
			for _, q := range questions {
				if q.Access != "sign" || q.Target != key || !strings.Contains(q.Message, `"me@here"`) ||
					!slices.Equal(q.Choices,
						[]protocol.Decision{protocol.DecisionDeny, protocol.DecisionOnce, protocol.DecisionSession}) {
					t.Errorf("asked %+v", q)
				}
			}
			harness.Eventually(t, "the refused uses are reported", func() bool {
				count := 0
				for _, d := range e.denials.All() {
					if d.Access == "sign" && d.Target == key && d.Suggestion == nil &&
						strings.Contains(d.Hint, "question") {
						count += d.Count
					}
				}
				return count == test.denied
			})
		})
	}
	t.Run("another purpose", func(t *testing.T) {
		t.Parallel()
		harness.RequirePrograms(t, "ssh-keygen")
		s := newScene(t)
		env, key := s.keyOfAgent(t)
		harness.Write(t, s.ProjectPath("file"), "text\n")
		e := s.ask(harness.Sandbox{"toolchains": []string{"ssh"}, "signing_keys": []string{"ask:" + key}},
			func(p protocol.RequestAccessParams) protocol.Decision {
				if strings.Contains(p.Message, `to sign for "git"`) {
					return protocol.DecisionSession
				}
				return protocol.DecisionDeny
			}, env...)
		session, _, _ := e.tool("sh", "-c", `sign() { rm -f file.sig; ssh-keygen -Y sign -n "$1" -f key.pub file; }
			sign git && echo one; sign git && echo two; sign root && echo three; ssh-add -T key.pub && echo four; true`)
		out := session.Output()
		if strings.Contains(out, "three") || strings.Contains(out, "four") {
			harness.Breach(t, "an answer about one purpose signed for another: %s", out)
		}
		questions := e.all()
		if !strings.Contains(out, "one") || !strings.Contains(out, "two") || len(questions) != 3 ||
			!strings.Contains(questions[1].Message, `"root"`) ||
			!strings.Contains(questions[2].Message, "for something unknown") {
			t.Errorf("asked %+v: %s", questions, out)
		}
	})
	t.Run("the client goes", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		env, key := s.keyOfAgent(t)
		harness.Must(t, unix.Mkfifo(s.ProjectPath("asked"), 0o600))
		never := make(chan bool)
		t.Cleanup(func() { close(never) })
		e := s.ask(harness.Sandbox{"toolchains": []string{"ssh"}, "signing_keys": []string{"ask:" + key}},
			func(protocol.RequestAccessParams) protocol.Decision {
				harness.Must(t, os.WriteFile(s.ProjectPath("asked"), []byte("\n"), 0o600))
				<-never
				return protocol.DecisionSession
			}, env...)
		_, status, _ := e.tool("sh", "-c", "ssh-add -T key.pub & read line <asked; kill $!; wait $!")
		if status == 0 {
			t.Error("signed without an answer")
		}
		e.awaitWithdrawn(t, 1)
	})
	t.Run("nobody to ask", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		env, key := s.keyOfAgent(t)
		e := harness.Start(t, s.World, harness.Options{Env: env, Settings: harness.Settings(harness.Sandbox{
			"toolchains": []string{"ssh"}, "signing_keys": []string{"ask:" + key},
		})})
		if output, status := e.Tool("ssh-add -T key.pub"); status == 0 {
			t.Errorf("signed: %s", output)
		}
	})
}
