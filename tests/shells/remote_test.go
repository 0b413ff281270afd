//go:build linux

package shells

import (
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// remote is the client of a server whose sessions are sandboxed. It calls ssh in
// the home directory.
type remote struct {
	w       *world
	ssh     string
	outside string // a file that sessions must not write
}

func (w *world) remote(ssh string) remote {
	harness.Write(w.t, filepath.Join(w.Home, "local"), "content")
	return remote{w, ssh, filepath.Join(w.Outside, "file")}
}

// run starts a program that must succeed, or must fail.
func (c remote) run(ok bool, name string, args ...string) {
	c.w.t.Helper()
	command := c.w.command(name, args...)
	command.Dir = c.w.Home
	command.Env = append(command.Env, "GIT_SSH_COMMAND="+c.ssh, "GIT_SSH_VARIANT=ssh", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := command.CombinedOutput(); (err == nil) != ok {
		c.w.t.Errorf("%s %q: %v: %s", name, args, err, out)
	}
}

func (c remote) mustHave(path, want string) {
	c.w.t.Helper()
	if got := harness.Read(c.w.t, path); got != want {
		c.w.t.Errorf("%s: %q, want %q", path, got, want)
	}
}

// copies copies files to the project and outside of it, by every program that
// runs its other half over ssh.
func (c remote) copies() {
	c.w.t.Helper()
	for protocol, arg := range map[string]string{"sftp": "-s", "rcp": "-O"} {
		copied := filepath.Join(c.w.Project, protocol)
		c.run(true, "scp", arg, "-S", c.ssh, "local", "host:"+copied)
		c.mustHave(copied, "content")
		c.run(false, "scp", arg, "-S", c.ssh, "local", "host:"+c.outside)
	}
	c.run(true, "rsync", "-e", c.ssh, "local", "host:"+filepath.Join(c.w.Project, "synced"))
	c.mustHave(filepath.Join(c.w.Project, "synced"), "content")
	c.run(false, "rsync", "-e", c.ssh, "local", "host:"+c.outside)

	c.run(true, "git", "init", "-q", "--bare", filepath.Join(c.w.Project, "bare.git"))
	c.run(true, "git", "clone", "-q", "host:"+filepath.Join(c.w.Project, "bare.git"), "clone")
	c.run(true, "git", "-C", "clone", "-c", "user.name=a", "-c", "user.email=a@b",
		"commit", "-q", "--allow-empty", "-m", "x")
	c.run(true, "git", "-C", "clone", "push", "-q", "origin", "HEAD")
	c.mustHave(c.outside, "")
}
