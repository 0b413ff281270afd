package explain

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// socket explains a connection to a Unix socket.
func (x *explainer) socket() {
	if i := slices.IndexFunc(x.Policy.UnixSockets, x.names); i >= 0 {
		granted := x.Policy.UnixSockets[i]
		if x.filtered(granted) {
			return
		}
		x.allow(&DecidingRule{Path: x.Target, Origin: granted.Origin},
			"the socket %s is granted by %s", display.Quote(x.Target), granted.Origin)
		return
	}
	x.refuse(nil, x.WrittenKey(socketsKey), x.Target, "no rule lets a session use the socket %s",
		display.Quote(x.Target))
	if alone := x.WithoutProject(); alone != nil && slices.ContainsFunc(alone.Policy.UnixSockets, x.names) {
		x.Key, x.Value = "", ""
		x.Hint = fmt.Sprintf("your own settings grant it; the project's file %s takes it away",
			display.Quote(x.ProjectFile()))
		return
	}
	if name := x.toolchainOfSocket(); name != "" {
		x.Key, x.Value = x.WrittenKey(toolchainsKey), name
		x.Hint = "sessions may list its keys and sign with them, and nothing else"
		return
	}
	x.Hint = "careful: a grant gives the full power of the program behind the socket; a session can use its own"
	path := x.Target
	if x.end.Path != "" {
		path = x.end.Path
	}
	if filepath.IsAbs(path) && x.OwnSocket(path) {
		x.Key, x.Value = "", ""
		x.Hint = "it is the sidecar's own, and starts commands in other sandboxes: no setting opens it"
		return
	}
	if risks.LooksUpNames(path) {
		x.Acts = "who asks it for a name sends that name out of the sandbox"
		x.Hint = "careful: " + x.Acts + "; names are looked up without it"
		if network := x.Policy.Network; !network.Allowed && !x.decides() {
			x.List, x.Hint = allowedHostsKey, "careful: "+x.Acts+"; "+singleHosts
		}
		return
	}
	if obeys := risks.AtSocket(path, x.RealHomes(x.Host)); obeys != "" {
		x.Acts, x.Hint = obeys, "careful: "+obeys
		x.doubt = x.Hint // people need some: the display, a container's engine
	}
}

// filtered explains the socket of an agent of which sessions have a part. It
// returns false if the part is at that path.
func (x *explainer) filtered(s policy.UnixSocket) bool {
	rule := &DecidingRule{Path: x.Target, Origin: s.Origin}
	switch {
	case s.Agent == "":
		return false
	case x.live().Replaceable(s):
		x.refuse(rule, "", "", "sessions may write where the socket of the %s is, %s", s.Agent, display.Quote(x.Target))
		x.Hint = "so another program could be behind it; grant sessions less of that directory"
	case s.InPlace:
		x.Hint = "a filter is in its place, which passes on what sessions may use, if this machine can put it there"
		return false
	default:
		x.refuse(rule, "", "", "a session has a part of the %s, and not at its socket %s", s.Agent,
			display.Quote(x.Target))
		x.Hint = fmt.Sprintf("inside, %s leads to a filter before it", map[policy.Agent]string{
			policy.SSHAgent: "SSH_AUTH_SOCK", policy.GPGAgent: "GNUPGHOME",
		}[s.Agent])
	}
	return true
}

// names reports whether a socket of a policy is the target.
func (x *explainer) names(s policy.UnixSocket) bool {
	if name, abstract := strings.CutPrefix(x.Target, risks.AbstractPrefix); abstract {
		return s.Abstract == name
	}
	return s.Path != "" && s.Path == x.end.Path
}
