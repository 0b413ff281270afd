package linux

import (
	"net"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A socket in another's place is known by what it is, not by its path.
func TestGrantSockets_InAnothersPlace(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(harness.ShortDir(t))
	harness.Must(t, err)
	filter, other := filepath.Join(dir, "filter"), filepath.Join(dir, "other")
	for _, path := range []string{filter, other} {
		listener, err := net.Listen("unix", path)
		harness.Must(t, err)
		defer listener.Close()
	}
	p := &policy.Policy{
		Restricted: true, UnixSockets: []policy.UnixSocket{{Path: filter}, {Path: other}},
		Replaced: []policy.Replaced{{Path: "/home/u/agent", Source: filter}},
	}
	got := (&ruleset{}).grantSockets(p)
	if !slices.Equal(got.Pinned, []string{filter}) || !slices.Equal(got.Paths, []string{other}) {
		t.Errorf("%+v", got)
	}
}
