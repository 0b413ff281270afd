//go:build linux

package shells

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// sshd is the server that tests/prerequisites unpacks: installed, its package
// would start a service.
const sshd = "/var/cache/sandbox-sidecar-tests/sshd/usr/sbin/sshd"

// A real sshd with a ForceCommand, and the programs that people use over ssh.
func TestSSHD(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "sshd needs a user of its own in the password file, and only root mounts another one")
	}
	w := newWorld(t, harness.Defaults(harness.Sandbox{"additional_read_only_paths": []string{"/etc/passwd"}}))
	keys := filepath.Join(w.Home, "keys")
	harness.Write(t, filepath.Join(keys, "passwd"),
		"root:x:0:0::"+w.Home+":/bin/bash\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n")
	for _, key := range []string{"host", "user"} {
		command := w.command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(keys, key))
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	harness.Write(t, filepath.Join(keys, "config"), strings.Join([]string{
		"HostKey " + filepath.Join(keys, "host"),
		"AuthorizedKeysFile " + filepath.Join(keys, "user.pub"),
		"StrictModes no", "UsePAM no", "PermitRootLogin yes", "PidFile none",
		"Subsystem sftp /usr/lib/openssh/sftp-server",
		"ForceCommand cd '" + w.Project + "' && exec " + w.link("sandbox-sh"), "",
	}, "\n"))
	// The server's connection is its standard input: it needs no port, and ends
	// with the client.
	server := filepath.Join(keys, "server")
	harness.Write(t, server, `#!/bin/sh
exec unshare --mount sh -ec '
mount --bind "$1/passwd" /etc/passwd
mount -t tmpfs none /run
mkdir /run/sshd
exec `+sshd+` -i -f "$1/config"' sh "$(dirname "$0")"
`)
	ssh := filepath.Join(keys, "ssh")
	harness.Write(t, ssh, `#!/bin/sh
exec ssh -F /dev/null -i '`+filepath.Join(keys, "user")+`' -o IdentityAgent=none -o LogLevel=ERROR \
	-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ProxyCommand='`+server+`' -l root "$@"
`)
	for _, script := range []string{server, ssh} {
		if err := os.Chmod(script, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := w.remote(ssh)

	c.run(false, ssh, "host", w.trespass())
	w.mustBeConfined("a command")
	c.copies()

	login := w.command(ssh, "-tt", "host")
	login.Env = append(login.Env, "TERM=xterm")
	p := harness.StartTerminal(t, login)
	p.Type(w.trespass() + "; echo done with it | tr d D; exit\n")
	p.Await("Done with")
	p.Status()
	w.mustBeConfined("a login")

	// The control: without the ForceCommand, the same server writes there.
	config := filepath.Join(keys, "config")
	harness.Write(t, config, strings.ReplaceAll(harness.Read(t, config), "ForceCommand", "#"))
	c.run(true, ssh, "host", "echo out > '"+c.outside+"'")
	c.mustHave(c.outside, "out\n")
}
