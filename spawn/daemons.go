package spawn

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// withoutDaemons removes the variables that name Unix sockets of processes
// outside the session, if the policy grants none of these sockets, and returns
// their names. outer is the environment before the policy's filter. It makes a
// name relative to XDG_RUNTIME_DIR absolute, because the session has a runtime
// directory of its own.
func withoutDaemons(env, outer []string, granted []policy.UnixSocket) (filtered, dropped []string) {
	allowed := func(s policy.UnixSocket) bool {
		real := s.Path
		if resolved, err := fsguard.EvalSymlinks(s.Path); s.Path != "" && err == nil {
			real = resolved
		}
		return slices.ContainsFunc(granted, func(g policy.UnixSocket) bool {
			return g.Path == real && g.Abstract == s.Abstract
		})
	}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		at := slices.IndexFunc(policy.Daemons, func(d policy.Daemon) bool { return d.Name == name })
		if at < 0 {
			filtered = append(filtered, entry)
			continue
		}
		sockets, known := policy.Daemons[at].Sockets(value, func(name string) string { return lookUp(outer, name) })
		reachable := slices.IndexFunc(sockets, allowed)
		switch {
		case known && reachable < 0:
			dropped = append(dropped, name)
		case known && sockets[reachable].Path == filepath.Join(lookUp(outer, "XDG_RUNTIME_DIR"), value):
			filtered = append(filtered, name+"="+sockets[reachable].Path)
		default:
			filtered = append(filtered, entry)
		}
	}
	return filtered, dropped
}
