package compile

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// The policy knows which of its paths are there: a session that lacks one of these
// says so, and is silent about all others. Its id does not depend on that.
func TestPresent_IsWhatIsThere(t *testing.T) {
	t.Parallel()
	const user = `{"enabled": true, "additional_read_only_paths": ["/data", "/link", "/later"],
		"allowed_unix_sockets": ["/run/agent", "/run/stale"]}`
	entries := map[string]string{
		"/home/u/project/": "", "/usr/bin/": "", "/data/": "", "/real/": "", "/link": "-> real", "/run/agent": "",
	}
	p := snapshotOf(t, resolvetest.InMemory(entries), user, "").Compile(document.KindTool).Policy
	granted := map[string]bool{}
	for _, rule := range p.Rules {
		granted[rule.Path] = true
	}
	for _, socket := range p.UnixSockets {
		granted[socket.Path] = true
	}
	for path, want := range map[string]bool{
		"/data": true, "/real": true, "/later": false, "/run/agent": true, "/run/stale": false, "/usr/bin": true,
		"/usr/sbin": false, "/home/u/project": true, "/home/u/.bashrc": false,
	} {
		if !granted[path] || p.Present[path] != want {
			t.Errorf("%s: granted %t, there %t, want %t", path, granted[path], p.Present[path], want)
		}
	}
	before := p.ID()
	if p.Present = nil; p.ID() != before {
		t.Error("another id although the same is enforced")
	}
}
