//go:build linux

package stories

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A repository is cloned over ssh. ssh can read neither the known hosts nor the
// key, and says only that the host is unknown. learn names what is missing; with
// an agent no key is given away.
func TestGitCloneOverSSH(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, "git", "ssh", "ssh-agent", "ssh-add")
	u := newUser(t, `{"localhost": "all"}`)
	u.env = append(u.env, "XDG_RUNTIME_DIR="+harness.ShortDir(t))
	host, port := serveSSH(t, u)
	harness.Write(t, filepath.Join(u.Home, ".ssh", "known_hosts"), fmt.Sprintf("[127.0.0.1]:%s %s", port, host))
	// ssh asks the password file for the home, so it has to be told.
	harness.Write(t, filepath.Join(u.Home, ".gitconfig"), fmt.Sprintf("[user]\n\tname = Tester\n\temail = "+
		"t@example.com\n[core]\n\tsshCommand = ssh -F none -o UserKnownHostsFile=%[1]s/known_hosts -i "+
		"%[1]s/id_ed25519\n", filepath.Join(u.Home, ".ssh")))
	if screen, status := u.types(t, `git init -q "$OUTSIDE/work" && cd "$OUTSIDE/work"
echo answered >file && git add file && git commit -qm first`); status != "0" {
		t.Fatal(screen)
	}
	clone := fmt.Sprintf(`git clone -q "ssh://me@127.0.0.1:%s$OUTSIDE/work" copy`, port)
	screen, status := u.types(t, "sandbox-sidecar exec -- "+clone)
	sees(t, screen, "Host key verification failed\nlearn -- CMD` shows what it was refused\nadd \"ssh\" to "+
		"\"toolchains\"")
	if status != "128" {
		t.Errorf("exit status %s", status)
	}
	// learn names the known hosts first, and then the agent. A private key is
	// never granted.
	agent := `eval "$(ssh-agent)" && ssh-add -q ~/.ssh/id_ed25519; trap 'kill $SSH_AGENT_PID' EXIT` + "\n"
	screen, _ = u.types(t, agent+"sandbox-sidecar learn -- "+clone)
	sees(t, screen, `id_ed25519": careful: SSH keys are stored there, so no setting is suggested
to use them through an agent, add "ssh" to "toolchains"
"toolchains": \[ "ssh" \]`)
	u.paste(t, screen)
	screen, status = u.types(t, agent+"sandbox-sidecar exec -- "+clone+" && cat copy/file")
	sees(t, screen, "answered")
	if status != "0" {
		t.Errorf("the way on leads nowhere: exit status %s:\n%s", status, screen)
	}
}

// A commit is signed by a key of the agent, and the signature is good outside.
// Nothing else can be done with the agent, and whoever tries is reported.
func TestSigningWithTheAgent(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets")
	harness.RequirePrograms(t, "git", "ssh-keygen", "ssh-agent", "ssh-add")
	u := newUser(t, `{"toolchains": ["ssh"], "localhost": "all"}`)
	u.env = append(u.env, "XDG_RUNTIME_DIR="+harness.ShortDir(t)) // a socket's path is short
	_, private := harness.NewSSHKey(t)
	key := filepath.Join(u.Home, ".ssh", "id_ed25519")
	harness.WritePrivate(t, key, private)
	const prepare = `ssh-keygen -y -f ~/.ssh/id_ed25519 >~/.ssh/id_ed25519.pub
echo "t@example.com $(cat ~/.ssh/id_ed25519.pub)" >~/.ssh/allowed_signers
git init -q; git config --global user.name T; git config --global user.email t@example.com
git config --global gpg.format ssh; git config --global user.signingkey ~/.ssh/id_ed25519.pub
git config --global gpg.ssh.allowedSignersFile ~/.ssh/allowed_signers
`
	if screen, status := u.types(t, prepare); status != "0" {
		t.Fatal(screen)
	}
	screen, status := u.types(t, `eval "$(ssh-agent)" >/dev/null; trap 'kill $SSH_AGENT_PID' EXIT; ssh-add -q ~/.ssh/id_ed25519
sandbox-sidecar exec -- sh -c 'git commit -q --allow-empty -S -m signed; ssh-add -D; ssh-add -x </dev/null; true'
echo "== outside"; git verify-commit HEAD; ssh-add -l`)
	sees(t, screen, `agent "remove all keys"
== outside
Good "git" signature for t@example.com
ED25519`)
	if status != "0" {
		t.Errorf("exit status %s:\n%s", status, screen)
	}
	// The whole agent is another setting, which says so.
	u.keys["toolchains"], u.keys["allowed_unix_sockets"] = []any{}, []any{"$SSH_AUTH_SOCK"}
	harness.Write(t, u.UserSettings(), harness.Defaults(u.keys))
	screen, _ = u.types(t, `eval "$(ssh-agent)" >/dev/null; trap 'kill $SSH_AGENT_PID' EXIT; ssh-add -q ~/.ssh/id_ed25519
sandbox-sidecar exec -- ssh-add -D; ssh-add -l || true`)
	sees(t, screen, "All identities removed\nhas no identities")
}

// A server that is not known yet is a question of ssh's own. The answer counts
// for this connection, and the user learns how it counts for good.
func TestSSHToANewHost(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, "ssh", "ssh-agent", "ssh-add")
	u := newUser(t, `{"toolchains": ["ssh"], "localhost": "all"}`)
	u.env = append(u.env, "XDG_RUNTIME_DIR="+harness.ShortDir(t)) // a socket's path is short
	_, port := serveSSH(t, u)
	known := filepath.Join(u.Home, ".ssh", "known_hosts")
	harness.Write(t, known, "")
	harness.Write(t, filepath.Join(u.Home, ".ssh", "id_ed25519.pub"), "")
	command := exec.Command("/bin/bash", "-e", "-c", fmt.Sprintf(`eval "$(ssh-agent)" >/dev/null
trap 'kill $SSH_AGENT_PID' EXIT
ssh-add -q ~/.ssh/id_ed25519
sandbox-sidecar exec -- ssh -n -F none -o UserKnownHostsFile=%s -p %s me@127.0.0.1 'echo greet"ed"; exit 7'`, known, port))
	command.Dir, command.Env = u.Project, u.env
	terminal := harness.StartTerminal(t, command)
	terminal.Await(`Are you sure you want to continue connecting`)
	terminal.Type("yes\r")
	terminal.Await(`Failed to add the host to the list of known hosts`)
	terminal.Await(`greeted`)
	terminal.Await(`connect\s+once\s+without\s+the\s+sandbox`)
	if status := terminal.Status(); status != 7 {
		t.Errorf("exit status %d", status)
	}
	if text := harness.Read(t, known); text != "" {
		t.Errorf("a session has added a known host: %q", text)
	}
}

// serveSSH serves the user's own files over ssh, to the user's key, and returns
// the host's key, as known hosts have it, and its port.
func serveSSH(t *testing.T, u *user) (host, port string) {
	t.Helper()
	userKey, private := harness.NewSSHKey(t)
	harness.WritePrivate(t, filepath.Join(u.Home, ".ssh", "id_ed25519"), private)
	return harness.ServeSSH(t, userKey.PublicKey(), u.env)
}
