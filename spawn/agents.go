package spawn

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/agent"
)

const (
	// agentVariable names the ssh-agent's socket.
	agentVariable = "SSH_AUTH_SOCK"
	// gpgVariable names GnuPG's home directory.
	gpgVariable = "GNUPGHOME"
	// maxKeyring bounds each file of GnuPG that is copied.
	maxKeyring = 64 << 20
)

// filterAgents puts filters in the place of the agents that sets of toolchains
// grant. One that allowed_unix_sockets grants is granted as a whole.
func (a *attempt) filterAgents() {
	p := &a.policy
	if !p.Restricted {
		return
	}
	// Until a filter is there, nothing is granted.
	var filtered []policy.UnixSocket
	p.UnixSockets = slices.DeleteFunc(slices.Clone(p.UnixSockets), func(s policy.UnixSocket) bool {
		if s.Agent != "" {
			filtered = append(filtered, s)
		}
		return s.Agent != ""
	})
	for _, socket := range filtered {
		var err error
		switch socket.Agent {
		case policy.SSHAgent:
			err = a.filterSSH(socket.Path)
		case policy.GPGAgent:
			err = a.filterGPG(socket.Path)
		}
		if err != nil {
			why := "the " + string(socket.Agent) + " cannot be used: " + cause(err).Error()
			a.running.log.Warn(why)
			a.warnings = append(a.warnings, why)
		}
	}
}

var errReplaceable = errors.New("sessions may write where its socket is")

func (a *attempt) filterSSH(whole string) error {
	real, err := fsguard.EvalSymlinks(lookUp(lastOfEach(a.request.Env), agentVariable))
	if err != nil || real != whole || a.policy.Outside(filepath.Dir(real)).Has(policy.Write) {
		return errors.New("SSH_AUTH_SOCK names another socket by now, or one where sessions may write")
	}
	socket, err := a.placeFilter(func(socket string) (*agent.Filter, error) {
		return agent.Listen(socket, real, a.refusedByAgent())
	}, "a filter for the ssh-agent")
	if err == nil {
		a.own = append(a.own, agentVariable+"="+socket)
	}
	return err
}

// refusedByAgent returns a function that reports what an agent was not asked.
func (a *attempt) refusedByAgent() func(what string) {
	running := a.running
	return func(what string) {
		if running.denials != nil {
			running.denied(platform.Denial{Access: platform.RefusedAgent, Target: what, Count: 1})
		}
	}
}

// placeFilter makes a filter's socket in a directory that no session may write,
// and grants it.
func (a *attempt) placeFilter(listen func(socket string) (*agent.Filter, error), key string) (string, error) {
	dir, err := a.running.group.MakeDir()
	if err != nil {
		return "", err
	}
	socket := filepath.Join(dir, "agent")
	filter, err := listen(socket)
	if err != nil {
		return "", err
	}
	a.running.agents = append(a.running.agents, filter)
	a.policy.UnixSockets = append(a.policy.UnixSockets, policy.UnixSocket{
		Path: socket, Origin: policy.Origin{File: policy.OriginSession, Key: key},
	})
	return socket, nil
}

// filterGPG gives the session a home directory of GnuPG with copies of what is
// public, and with a link to the filter for the agent.
func (a *attempt) filterGPG(whole string) error {
	if a.policy.Outside(filepath.Dir(whole)).Has(policy.Write) {
		return errReplaceable
	}
	if _, err := fsguard.Lstat(whole); errors.Is(err, fs.ErrNotExist) {
		// It may start any time. Until then gpg says what it lacks.
		a.running.log.Info("no gpg-agent is running", "socket", whole)
	}
	home, err := a.running.group.MakeDir()
	if err != nil {
		return err
	}
	if err := a.copyPublic(home); err != nil {
		return err
	}
	description := agent.Description("A session in the sandbox wants to sign; its project is " +
		display.Quote(a.policy.Project))
	socket, err := a.placeFilter(func(socket string) (*agent.Filter, error) {
		return agent.ListenGPG(socket, whole, description, pinentryOptions(), a.refusedByAgent())
	}, "a filter for the gpg-agent")
	if err != nil {
		return err
	}
	if err := os.Symlink(socket, filepath.Join(home, "S.gpg-agent")); err != nil {
		return err
	}
	a.policy.Rules = append(slices.Clone(a.policy.Rules), policy.Rule{
		Path: home, Access: policy.ReadWrite,
		Origin: policy.Origin{File: policy.OriginSession, Key: "the session's home directory of GnuPG"},
	})
	a.own = append(a.own, gpgVariable+"="+home)
	return nil
}

// copyPublic copies what the session may read of the user's home directory of
// GnuPG.
func (a *attempt) copyPublic(home string) error {
	env := lastOfEach(a.request.Env)
	from := cmp.Or(lookUp(env, gpgVariable), filepath.Join(lookUp(env, "HOME"), ".gnupg"))
	for _, name := range []string{
		"pubring.kbx", "pubring.gpg", "public-keys.d/pubring.db", "trustdb.gpg", "gpg.conf", "common.conf",
	} {
		real, err := fsguard.EvalSymlinks(filepath.Join(from, name))
		if err != nil {
			continue // mostly there is none
		}
		if rule, ok := a.policy.Find(policy.Read, real); !ok || !rule.Access.Has(policy.Read) {
			continue
		}
		file, err := fsguard.ReadFile(real, maxKeyring)
		if err != nil || file.Data == nil {
			continue
		}
		if len(file.Data) > maxKeyring {
			a.warnings = append(a.warnings, "GnuPG's "+name+" is too large to be copied for a session")
			continue
		}
		to := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, file.Data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// pinentryOptions say where the agent asks for a passphrase. They are the
// sidecar's own: a session could name a program among them.
func pinentryOptions() []string {
	var options []string
	add := func(prefix, variable string) {
		if value := os.Getenv(variable); value != "" {
			options = append(options, prefix+value)
		}
	}
	add("display=", "DISPLAY")
	add("xauthority=", "XAUTHORITY")
	for _, name := range []string{"WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "DBUS_SESSION_BUS_ADDRESS"} {
		add("putenv="+name+"=", name)
	}
	return options
}
