package darwin

import (
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/proxy"
)

// listen starts the proxy of all sessions of this sidecar. It ends with the
// sidecar.
var listen = sync.OnceValues(proxy.Listen)

// reach is how one session reaches hosts; nil if it reaches none.
type reach struct {
	server     *proxy.Server
	token      string
	executable string
	client     proxy.Client
}

// planHosts opens the proxy's port for a session, and lets it run this binary
// for ssh.
func (b *Backend) planHosts(plan *Plan, p *policy.Policy, hooks platform.Hooks) (*reach, error) {
	server, err := listen()
	if err != nil {
		return nil, err
	}
	r := &reach{server: server, token: proxy.NewToken(), executable: b.Executable}
	r.client.Refused = func(target, greeting string) {
		if hooks.Denied != nil && p.OnDenied != policy.Ignore {
			hooks.Denied(platform.Denial{
				Access: platform.RefusedConnect, Target: target, Greeting: greeting, Count: 1,
			})
		}
	}
	r.client.Connections, r.client.Crowded = p.Limits.Connections, hooks.Crowded
	r.client.Connected = func(target string) {
		if hooks.Connected != nil {
			hooks.Connected(target, "")
		}
	}
	if r.client.Rules, err = hosts.Parse(p.Network); err != nil {
		return nil, err
	}
	plan.Proxy = server.Port()
	for _, path := range b.Fixed {
		plan.Grants = append(plan.Grants, Grant{Path: handshake.RawString(path), Access: policy.Read | policy.Execute})
	}
	return r, nil
}

// environ are the session's variables.
func (r *reach) environ() []string {
	if r == nil {
		return nil
	}
	return proxy.Environ(r.server.Port(), r.token, r.executable)
}

// admit lets the session use the proxy, until end is called.
func (r *reach) admit() (end func()) {
	if r == nil {
		return func() {}
	}
	return r.server.Admit(r.token, r.client)
}
