package explain

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

func TestLocalhost_IsExplained(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	s := snapshotOf(t, f, `{"enabled": true, "localhost": "own", "allowed_hosts": ["localhost:5432"]}`, "")
	for _, test := range []struct {
		target, key, value, hint string
		allowed                  bool
	}{
		{"127.0.0.1:3000", "allowed_hosts", "localhost:3000", "outside of the sandbox", false},
		{"[::1]:3000", "allowed_hosts", "localhost:3000", "outside of the sandbox", false},
		{"0.0.0.0:3000", "allowed_hosts", "localhost:3000", "outside of the sandbox", false},
		{"localhost:9229", "allowed_hosts", "localhost:9229", "careful", false},
		{"127.0.0.1:2375", "allowed_hosts", "localhost:2375", "careful", false},
		{"127.0.0.1:5432", "allowed_hosts", "", "", true},
		{"192.0.2.1:3000", "allow_network", "", "", true},
		{"a.org:443", "allow_network", "", "", true},
	} {
		x, err := Why(s, document.KindTool, Connect, test.target)
		if err != nil {
			t.Fatal(err)
		}
		if x.Allowed != test.allowed || x.Key != test.key || x.Value != test.value ||
			!strings.Contains(x.Hint, test.hint) {
			t.Errorf("%s: %+v", test.target, x)
		}
	}
	// Nothing is added by a click that gives a session a debugger.
	if suggestion, err := Suggest(s, document.KindTool, "connect", "127.0.0.1:9229", "curl"); err != nil ||
		suggestion.Key != "" || !strings.Contains(suggestion.Hint, "careful") {
		t.Errorf("%+v %v", suggestion, err)
	}
	if suggestion, err := Suggest(s, document.KindTool, "connect", "127.0.0.1:3000", "curl"); err != nil ||
		suggestion.Instruction() != `add "localhost:3000" to "allowed_hosts"` {
		t.Errorf("%+v %v", suggestion, err)
	}
	none := snapshotOf(t, f, `{"enabled": true, "localhost": "none"}`, "")
	if x, err := Why(none, document.KindTool, Connect, "127.0.0.1:3000"); err != nil || x.Allowed ||
		x.Key != "" {
		t.Errorf("none: %+v %v", x, err)
	}
}
