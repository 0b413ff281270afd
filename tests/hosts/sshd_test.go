//go:build linux

package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// sshd is the server that tests/prerequisites unpacks: installed, its package
// would start a service.
const sshd = "/var/cache/sandbox-sidecar-tests/sshd/usr/sbin/sshd"

// git clones from a real sshd and pushes to it, with a key of the agent, while
// only that host is allowed. The same server by another name is not reached.
func TestGitOverSSHToAnAllowedHost(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "sshd needs a user of its own in the password file, and only root mounts another one")
	}
	harness.Require(t, "network_hosts", "unix_sockets")
	harness.RequirePrograms(t, "git", "ssh", "ssh-agent", "ssh-add", "ssh-keygen")
	s := newScene(t)
	keys := s.HomePath("keys")
	harness.Write(t, filepath.Join(keys, "passwd"),
		"root:x:0:0::"+s.Home+":/bin/bash\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n")
	harness.Write(t, filepath.Join(keys, "config"), strings.Join([]string{
		"HostKey " + filepath.Join(keys, "host"), "AuthorizedKeysFile " + s.HomePath(".ssh/id_ed25519.pub"),
		"StrictModes no", "UsePAM no", "PermitRootLogin yes", "PidFile none", "",
	}, "\n"))
	harness.Write(t, filepath.Join(s.dir, "sshd"), `#!/bin/sh
exec unshare --mount sh -ec '
mount --bind "$1/passwd" /etc/passwd
mount -t tmpfs none /run
mkdir /run/sshd
exec `+sshd+` -i -f "$1/config"' sh "`+keys+`"
`)
	harness.Must(t, os.Chmod(filepath.Join(s.dir, "sshd"), 0o700))
	s.outside(t, `mkdir -m 700 "$HOME/.ssh"
ssh-keygen -q -t ed25519 -N "" -f "$HOME/keys/host"; ssh-keygen -q -t ed25519 -N "" -f "$HOME/.ssh/id_ed25519"
echo "[allowed.example]:2022,[evil.example]:2022 $(cut -d" " -f1,2 "$HOME/keys/host.pub")" >"$HOME/.ssh/known_hosts"
git config --global user.name T; git config --global user.email t@example.com; git config --global init.defaultBranch main
git init -q --bare "`+s.Outside+`/shared.git"`)
	const line = `set -e
export GIT_SSH_COMMAND="ssh -F none -o BatchMode=yes -o UserKnownHostsFile=$HOME/.ssh/known_hosts"
from=ssh://root@HOST:2022OUTSIDE/shared.git
git clone -q $from HOST; cd HOST
git symbolic-ref HEAD refs/heads/main; echo $$ >file; git add file; git commit -q -m HOST
git push -q -u origin main; git fetch -q; git rev-parse --abbrev-ref main@{u}`
	run := func(host, settings string, wrapper ...string) (string, error) {
		harness.Write(t, s.UserSettings(), settings)
		script := strings.NewReplacer("HOST", host, "OUTSIDE", s.Outside).Replace(line)
		withKey := []string{"sh", "-c", `ssh-add -q "$HOME/.ssh/id_ed25519"; exec "$@"`, "-"}
		command := exec.Command("ssh-agent", slices.Concat(withKey, wrapper, []string{"sh", "-c", script})...)
		command.Dir, command.Env = s.Project, append(harness.Environ(s.World), "XDG_RUNTIME_DIR="+harness.ShortDir(t),
			"TMPDIR="+harness.ShortDir(t))
		s.Wrap(command)
		out, err := command.CombinedOutput()
		return string(out), err
	}
	subjects := func() string {
		command := exec.Command("git", "-C", s.OutsidePath("shared.git"), "log", "--format=%s", "main")
		command.Env = harness.Environ(s.World)
		out, _ := command.CombinedOutput()
		return strings.Join(strings.Fields(string(out)), " ")
	}
	settings := func(change harness.Sandbox) string {
		change["allow_network"], change["toolchains"] = false, []string{"ssh"}
		return harness.Defaults(change)
	}
	inside := []string{harness.Binary(t), "exec", "--"}
	one := harness.Sandbox{"allowed_hosts": []string{"allowed.example:2022"}}
	// The control: outside, both names lead to the server.
	if out, err := run("evil.example", harness.Off()); err != nil {
		t.Fatalf("outside: %v: %s", err, out)
	}
	if out, err := run("allowed.example", settings(one), inside...); err != nil ||
		!strings.Contains(out, "origin/main") ||
		subjects() != "allowed.example evil.example" {
		t.Fatalf("the allowed host: %v: %s\npushed: %s", err, out, subjects())
	}
	harness.Must(t, os.RemoveAll(s.ProjectPath("evil.example")))
	harness.Must(t, os.RemoveAll(s.ProjectPath("allowed.example")))
	before := s.visits()
	out, err := run("evil.example", settings(one), inside...)
	if err == nil || s.visits() != before ||
		!strings.Contains(harness.Unfold(out), `add "evil.example:2022" to "allowed_hosts"`) {
		harness.Breach(t, "another host: %v: %s", err, out)
	}
	// A key that is not chosen logs in nowhere, also where the host is allowed.
	one["signing_keys"] = []string{}
	out, err = run("allowed.example", settings(one), inside...)
	if err == nil || !strings.Contains(harness.Unfold(out), `to log in as "root"`) {
		harness.Breach(t, "another key: %v: %s", err, out)
	}
	if subjects() != "allowed.example evil.example" {
		harness.Breach(t, "pushed: %s", subjects())
	}
}
