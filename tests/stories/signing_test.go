//go:build linux

package stories

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// twoKeys gives the user two keys of ssh, "chosen" and "other", and returns their
// fingerprints. The script that it returns starts an agent with both.
func twoKeys(t *testing.T, u *user) (chosen, other, withAgent string) {
	t.Helper()
	u.env = append(u.env, "XDG_RUNTIME_DIR="+harness.ShortDir(t)) // a socket's path is short
	var prints []string
	for _, name := range []string{"chosen", "other"} {
		signer, private := harness.NewSSHKey(t)
		harness.WritePrivate(t, filepath.Join(u.Home, ".ssh", name), private)
		harness.Write(t, filepath.Join(u.Home, ".ssh", name+".pub"),
			string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
		prints = append(prints, ssh.FingerprintSHA256(signer.PublicKey()))
	}
	if screen, status := u.types(t, `chmod 600 ~/.ssh/chosen ~/.ssh/other
for name in chosen other; do ssh-keygen -q -c -P "" -C me@$name -f ~/.ssh/$name >/dev/null; done
{ echo "t@example.com $(cat ~/.ssh/chosen.pub)"; echo "t@example.com $(cat ~/.ssh/other.pub)"; } >~/.ssh/allowed_signers
git init -q; git config --global user.name T; git config --global user.email t@example.com
git config --global gpg.format ssh; git config --global user.signingkey ~/.ssh/chosen.pub
git config --global gpg.ssh.allowedSignersFile ~/.ssh/allowed_signers
`); status != "0" {
		t.Fatal(screen)
	}
	return prints[0], prints[1], `eval "$(ssh-agent)" >/dev/null; trap 'kill $SSH_AGENT_PID' EXIT
ssh-add -q ~/.ssh/chosen ~/.ssh/other
`
}

// Of two keys of an agent, a session uses the one that the settings name. The
// other is refused, whoever asks for it, and the report names the setting.
func TestSigningWithAChosenKey(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets")
	harness.RequirePrograms(t, "git", "ssh-keygen", "ssh-agent", "ssh-add")
	u := newUser(t, `{"toolchains": ["ssh"]}`)
	chosen, other, agent := twoKeys(t, u)
	const sign = `sandbox-sidecar exec -- sh -c '
git commit -q --allow-empty -S -m first && echo "first is signed"
git -c user.signingkey=$HOME/.ssh/other.pub commit -q --allow-empty -S -m second && echo "second is signed"
true'
git log --format="%s %G?"
`
	screen, _ := u.types(t, agent+sign) // without a choice
	sees(t, screen, "first is signed\nsecond is signed\nsecond G\nfirst G")
	u.keys["signing_keys"] = []any{chosen}
	harness.Write(t, u.UserSettings(), harness.Defaults(u.keys))
	screen, _ = u.types(t, agent+"git update-ref -d HEAD\n"+sign)
	sees(t, screen, `first is signed
agent refused operation
use the key "`+quoteMeta(other)+`" \("me@other", to sign for "git"\)
add "`+quoteMeta(other)+`" to "signing_keys"
!second is signed`)
	u.paste(t, screen)
	screen, _ = u.types(t, agent+"git update-ref -d HEAD\n"+sign)
	sees(t, screen, "first is signed\nsecond is signed\n!sandbox-sidecar:")
	// What is no key opens none, and an agent that is granted as a whole none
	// besides.
	u.keys["signing_keys"], u.keys["allowed_unix_sockets"] = []any{chosen}, []any{"$SSH_AUTH_SOCK"}
	harness.Write(t, u.UserSettings(), harness.Defaults(u.keys))
	screen, _ = u.types(t, agent+"git update-ref -d HEAD\n"+sign+
		"sandbox-sidecar exec -- ssh-add -D || true; ssh-add -l; sandbox-sidecar explain sign "+other+" || true")
	sees(t, screen, `first is signed
agent "remove all keys
chosen \(ED25519\)
other \(ED25519\)
refused: no setting lets a session use the key
!second is signed`)
}

func quoteMeta(key string) string { return strings.NewReplacer("+", `\+`).Replace(key) }

// With "ask:" each use is a question on the terminal, and only a yes signs.
func TestSigningIsAskedFor(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets")
	harness.RequirePrograms(t, "git", "ssh-keygen", "ssh-agent", "ssh-add")
	for name, test := range map[string]struct {
		typed []string // for each question
		signs string
	}{
		"once":       {[]string{"once\n", "deny\n"}, "first"},
		"no":         {[]string{"deny\n"}, ""}, // and no second question
		"in all":     {[]string{"session\n"}, "second first"},
		"twice once": {[]string{"once\n", "once\n"}, "second first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, `{"toolchains": ["ssh"], "signing_keys": ["ask:*"]}`)
			chosen, _, agent := twoKeys(t, u)
			command := exec.Command("/bin/bash", "-e", "-c", agent+`sandbox-sidecar exec -- sh -c '
git commit -q --allow-empty -S -m first; git commit -q --allow-empty -S -m second; true'
git log --all --format="%s %G?" >log`)
			command.Dir, command.Env = u.Project, u.env
			terminal := harness.StartTerminal(t, command)
			for i, answer := range test.typed {
				terminal.Await(`wants to use the key(\x1b\[K)?\s+"` + quoteMeta(chosen))
				terminal.Await(`(?s)` + strings.Repeat(`.*\(Enter denies\): `, i+1))
				terminal.Type(answer)
			}
			if status := terminal.Status(); status != 0 {
				t.Errorf("exit status %d:\n%s", status, terminal.Screen)
			}
			log := strings.ReplaceAll(strings.TrimSpace(harness.Read(t, filepath.Join(u.Project, "log"))), "\n", " ")
			if got := strings.ReplaceAll(log, " G", ""); got != test.signs {
				t.Errorf("signed are %q, not %q:\n%s", log, test.signs, terminal.Screen)
			}
		})
	}
}

// The same for GnuPG, whose keys are named by their keygrips.
func TestSigningWithAChosenKeyOfGPG(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets")
	harness.RequirePrograms(t, "git", "gpg", "gpg-agent", "gpg-connect-agent", "gpgconf")
	u := newUser(t, `{"toolchains": ["gpg"]}`)
	gnupg := filepath.Join(harness.ShortDir(t), "g") // a socket's path is short
	harness.Must(t, os.Mkdir(gnupg, 0o700))
	u.env = append(u.env, "GNUPGHOME="+gnupg, "XDG_RUNTIME_DIR="+harness.ShortDir(t))
	t.Cleanup(func() { u.types(t, "gpgconf --kill all") })
	screen, status := u.types(t, `for name in chosen other; do
gpg --quiet --batch --passphrase '' --quick-gen-key $name@example.com future-default default never 2>/dev/null
done
git init -q; git config --global user.name T; git config --global user.email t@example.com
for name in chosen other; do
gpg -K --with-keygrip --with-colons $name@example.com 2>/dev/null | sed -n 's/^grp:::::::::\(.*\):/\1/p' | head -n 1
done`)
	grips := strings.Fields(screen)
	if status != "0" || len(grips) != 2 {
		t.Fatal(status, screen)
	}
	const sign = `sandbox-sidecar exec -- sh -c '
for name in chosen other; do git commit -q --allow-empty -S$name@example.com -m $name && echo "$name is signed"; done
printf "SIGKEY %s\nSETHASH --hash=sha256 %s\nPKSIGN\nSIGKEY %s\nSETHASH --hash=sha256 %s\nPKSIGN\n" GRIPS | gpg-connect-agent
gpg --batch --pinentry-mode loopback --passphrase "" --export-secret-keys chosen@example.com | wc -c
true'
git log --format="%s %G?"`
	hash := strings.Repeat("0a", 32)
	script := strings.ReplaceAll(sign, "GRIPS", fmt.Sprintf("%s %s %s %s", grips[1], hash, grips[0], hash))
	u.keys["signing_keys"] = []any{strings.ToLower(grips[0])}
	harness.Write(t, u.UserSettings(), harness.Defaults(u.keys))
	screen, _ = u.types(t, script)
	sees(t, screen, `chosen is signed
ERR 67109115 Forbidden
D \(
0
use the key "`+grips[1]+`" \(to sign\), 2 times
add "`+grips[1]+`" to "signing_keys"
agent "export or import a secret key
chosen [GU]
!other is signed`)
	u.paste(t, screen)
	if screen, _ = u.types(t, script); !strings.Contains(screen, "other is signed") {
		t.Errorf("the way on leads nowhere:\n%s", screen)
	}
}

// The agent that ssh's configuration names is used through the filter, too, and
// nothing of the variable is needed.
func TestIdentityAgent(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets", "temporary_files")
	harness.RequirePrograms(t, "ssh", "ssh-agent", "ssh-add")
	u := newUser(t, `{"toolchains": ["ssh"], "allowed_env_vars": ["PATH", "HOME", "USER", "NAMED"],
		"localhost": "all"}`)
	host, port := serveSSH(t, u)
	ssh := filepath.Join(u.Home, ".ssh")
	harness.Write(t, filepath.Join(ssh, "known_hosts"), fmt.Sprintf("[127.0.0.1]:%s %s", port, host))
	shared := filepath.Join(harness.ShortDir(t), "agent") // in a directory that is private inside
	socket := filepath.Join(u.Home, "agent")
	u.env = append(u.env, "XDG_RUNTIME_DIR="+harness.ShortDir(t), "NAMED="+socket, "PORT="+port)
	const script = `ssh-keygen -y -f ~/.ssh/id_ed25519 >~/.ssh/id_ed25519.pub
SOCKET=$1
eval "$(ssh-agent -a "$SOCKET")" >/dev/null; unset SSH_AUTH_SOCK
trap 'kill $SSH_AGENT_PID; while kill -0 $SSH_AGENT_PID 2>/dev/null; do :; done' EXIT # it removes its socket
SSH_AUTH_SOCK=$SOCKET ssh-add -q ~/.ssh/id_ed25519
sandbox-sidecar exec -- sh -c 'ssh -n -F ~/.ssh/config -o UserKnownHostsFile=$HOME/.ssh/known_hosts -p '$PORT' me@127.0.0.1 "echo greet\"\"ed"
SSH_AUTH_SOCK='$SOCKET' ssh-add -l; SSH_AUTH_SOCK='$SOCKET' ssh-add -D; echo asked'
SSH_AUTH_SOCK=$SOCKET ssh-add -l`
	for value, works := range map[string]bool{
		socket: true, `"` + socket + `"`: true, "${NAMED}": true, "$NAMED": true, shared: true,
		"none": false, "SSH_AUTH_SOCK": false, "${MISSING}" + socket: false,
	} {
		harness.Write(t, filepath.Join(ssh, "config"), "Host elsewhere\n  IdentityAgent /nowhere\nHost *\n  "+
			"IdentityAgent "+value+"\n")
		at := socket
		if value == shared {
			at = shared
		}
		screen, _ := u.types(t, "set -- "+at+"\n"+script)
		if greeted := strings.Contains(screen, "greeted"); greeted != works {
			t.Errorf("IdentityAgent %s: greeted %t:\n%s", value, greeted, screen)
		}
		sees(t, screen, "asked\nED25519") // the key is still there
		if works {
			sees(t, screen, `agent "remove all keys`)
		}
	}
}

// Without namespaces the agent's own socket is there, which no session may use.
// The report says what would help.
func TestIdentityAgentWithoutNamespaces(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets")
	harness.RequirePrograms(t, "ssh-agent", "ssh-add")
	u := newUser(t, `{"toolchains": ["ssh"]}`)
	u.wrap = harness.WithoutNamespaces(t)
	socket := filepath.Join(u.Home, "agent")
	harness.Write(t, filepath.Join(u.Home, ".ssh", "config"), "IdentityAgent "+socket+"\n")
	u.env = append(u.env, "XDG_RUNTIME_DIR="+harness.ShortDir(t))
	screen, _ := u.types(t, `eval "$(ssh-agent -a "$HOME/agent")" >/dev/null; trap 'kill $SSH_AGENT_PID' EXIT; unset SSH_AUTH_SOCK
sandbox-sidecar exec -- sh -c 'SSH_AUTH_SOCK=$HOME/agent ssh-add -l; true'; echo ended`)
	sees(t, screen, `Error connecting to agent
cannot put a filter before ssh.s IdentityAgent; use SSH_AUTH_SOCK
ended`)
}
