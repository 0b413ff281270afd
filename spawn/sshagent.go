package spawn

import (
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/agent"
)

// agentVariable names the ssh-agent's socket.
const agentVariable = "SSH_AUTH_SOCK"

// filterAgent puts a filter in the place of the ssh-agent that a set of
// toolchains grants. One that allowed_unix_sockets grants is granted as a whole.
func (a *attempt) filterAgent() {
	p := &a.policy
	at := slices.IndexFunc(p.UnixSockets, func(s policy.UnixSocket) bool { return s.Origin.Key == "toolchains" })
	if !p.Restricted || at < 0 {
		return
	}
	whole := p.UnixSockets[at].Path
	// Until the filter is there, nothing is granted.
	p.UnixSockets = slices.Delete(slices.Clone(p.UnixSockets), at, at+1)
	real, err := fsguard.EvalSymlinks(lookUp(lastOfEach(a.request.Env), agentVariable))
	if err != nil || real != whole || p.Outside(filepath.Dir(real)).Has(policy.Write) {
		a.withoutAgent("SSH_AUTH_SOCK names another socket by now, or one where sessions may write")
		return
	}
	dir, err := a.running.group.MakeDir()
	if err != nil {
		a.withoutAgent(cause(err).Error())
		return
	}
	socket, running := filepath.Join(dir, "agent"), a.running
	running.agent, err = agent.Listen(socket, real, func(what string) {
		if running.denials != nil {
			running.denied(platform.Denial{Access: platform.RefusedAgent, Target: what, Count: 1})
		}
	})
	if err != nil {
		a.withoutAgent(err.Error())
		return
	}
	p.UnixSockets = append(p.UnixSockets, policy.UnixSocket{
		Path: socket, Origin: policy.Origin{File: policy.OriginSession, Key: "a filter for the ssh-agent"},
	})
	a.own = append(a.own, agentVariable+"="+socket)
}

// withoutAgent leaves the session without the agent. Its variable names a
// socket that it may not use.
func (a *attempt) withoutAgent(why string) {
	a.running.log.Warn("the ssh-agent cannot be used", "error", why)
	a.warnings = append(a.warnings, "the ssh-agent cannot be used: "+why)
}
