package spawn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// errNoProgram means that the program is not installed that has the secrets.
var errNoProgram = errors.New("there is no " + credentials.Program + " beside the sidecar")

// ownCredentials is the origin of what a session reads in the place of secrets.
var ownCredentials = policy.Origin{File: policy.OriginSession, Key: "credentials"}

// openRoom gives the session placeholders in the place of its secrets, and has
// the TLS of connections to their hosts opened. If that fails, it has neither:
// the policy hides files of credentials, and their variables do not pass.
func (a *attempt) openRoom(ctx context.Context, hooks *platform.Hooks) {
	p := a.policy
	if !p.Restricted || len(p.Credentials) == 0 {
		return
	}
	given, err := a.startRoom(ctx, hooks)
	if err != nil {
		why := fmt.Sprintf("credentials cannot be used, and sessions have no placeholders either: %v", cause(err))
		a.running.log.Warn(why)
		a.warnings = append(a.warnings, why)
		return
	}
	for _, w := range given.Withheld {
		why := fmt.Sprintf("credential %s is kept away, without a placeholder: %s", w.Name, w.Why)
		a.running.log.Info(why)
		a.warnings = append(a.warnings, why)
	}
	for name, value := range given.Variables {
		a.own = append(a.own, name+"="+value)
	}
	slices.Sort(a.own)
	for _, f := range given.Files {
		// A rule for the directory does not hold for what is mounted elsewhere.
		p.Rules = slices.Concat(p.Rules, []policy.Rule{{Path: f.Source, Access: policy.Read, Origin: ownCredentials}})
		p.Replaced = slices.Concat(p.Replaced, []policy.Replaced{{Path: f.Path, Source: f.Source, Needed: true}})
		p.Hidden = slices.DeleteFunc(slices.Clone(p.Hidden), func(h policy.Hidden) bool { return h.Path == f.Path })
	}
}

// startRoom starts the program that has the secrets.
func (a *attempt) startRoom(ctx context.Context, hooks *platform.Hooks) (credentials.Given, error) {
	if a.spawner.Credentials == "" {
		return credentials.Given{}, errNoProgram
	}
	p := a.policy
	dir, err := a.running.group.MakeDir()
	if err != nil {
		return credentials.Given{}, err
	}
	env := lastOfEach(a.request.Env)
	order := credentials.Order{Dir: dir, Env: env, Trusted: map[string]string{}}
	for _, c := range p.Credentials {
		wanted := credentials.Wanted{
			Name: c.Name, Hosts: c.Hosts, Variable: c.Variable, File: c.File, Format: c.Format, Command: c.Command,
			As: c.As,
		}
		if c.Variable != "" {
			wanted.Value = lookUp(env, c.Variable)
		}
		order.Wanted = append(order.Wanted, wanted)
	}
	for _, name := range credentials.TrustVariables {
		if value := lookUp(env, name); value != "" && p.Environment.Allows(name) {
			order.Trusted[name] = value
		}
	}
	running := a.running
	room, given, err := credentials.Open(ctx, a.spawner.Credentials, order, running.sent)
	if err != nil {
		return credentials.Given{}, err
	}
	running.room, hooks.Opener = room, room
	p.Rules = slices.Concat(p.Rules, []policy.Rule{{
		Path: dir, Access: policy.Read, Origin: ownCredentials,
	}})
	return given, nil
}

// sent reports what a session has sent to the host of a credential, or tried to.
func (r *running) sent(e credentials.Event) {
	if e.Kind == credentials.Used {
		r.log.Debug("a credential was used", "credential", e.Credential, "host", e.Host)
		return
	}
	r.log.Info("a request to the host of a credential was refused", "what", e.String())
	if r.denials != nil {
		r.denied(platform.Denial{
			Access: platform.RefusedConnect, Target: e.Host, Greeting: greetingOf(e), Opened: true, Count: 1,
		})
	}
}

// greetingOf says what of a connection was refused, behind "by".
func greetingOf(e credentials.Event) string {
	if e.Credential != "" {
		return "a request with " + e.Credential + ", " + e.Why
	}
	return "a request: " + e.Why
}
