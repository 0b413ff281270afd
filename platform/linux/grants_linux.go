package linux

import (
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/sockets"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// grantSockets returns the grants of Unix sockets. If the session may write a
// socket's directory, the socket is granted only if sockets.CheckPinned accepts
// it. So is one that is also put in another's place, where its path is that
// place's. The rule is then for that very socket. A grant without effect is removed
// from the rules and reported as missing.
func (r *ruleset) grantSockets(p *policy.Policy) sockets.Grants {
	var granted sockets.Grants
	for _, socket := range p.UnixSockets {
		if socket.Path == "" {
			granted.Abstract = append(granted.Abstract, socket.Abstract)
			continue
		}
		elsewhere := slices.ContainsFunc(p.Replaced, func(r policy.Replaced) bool { return r.Source == socket.Path })
		if _, movable := p.Find(policy.Write, filepath.Dir(socket.Path)); !movable && !elsewhere {
			granted.Paths = append(granted.Paths, socket.Path)
			continue
		}
		var checked stage.Identity
		err := sockets.CheckPinned(socket.Path, func(fd int) (err error) {
			checked, err = stage.IdentityOf(fd)
			return err
		})
		if err != nil {
			r.Missing = append(r.Missing, platform.Missing{Path: socket.Path, Reason: stage.WhyMissing(err)})
			r.revokeConnect(socket.Path)
			continue
		}
		r.bind(socket.Path, checked)
		granted.Pinned = append(granted.Pinned, socket.Path)
	}
	return granted
}

// bind binds the right to connect to a path to the socket that was checked. The
// stage opens the path again, and a session could put another socket there.
func (r *ruleset) bind(path string, checked stage.Identity) {
	for i := range r.Rules {
		if string(r.Rules[i].Path) == path && r.Rules[i].Access&stage.FSConnect != 0 {
			r.Rules[i].Checked = &checked
		}
	}
}

// revokeConnect removes the right to connect to a path from the rules.
func (r *ruleset) revokeConnect(path string) {
	for i := range r.Rules {
		if string(r.Rules[i].Path) == path {
			r.Rules[i].Access &^= stage.FSConnect
		}
	}
	r.Rules = slices.DeleteFunc(r.Rules, func(rule stage.Rule) bool { return rule.Access == 0 })
}
