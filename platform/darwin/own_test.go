package darwin

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// What a session has in the sidecar's directories is as its rules say: it may write
// its runtime directory, but not the start-up files of shells, which sessions of
// all projects read.
func TestProfile_OpensOwnStateAsGranted(t *testing.T) {
	t.Parallel()
	const own, start, other = stateDir + "/run/s1", stateDir + "/history/start", stateDir + "/run/s9"
	const socket = stateDir + "/run/g1/agent.sock"
	d := mac()
	d.add("dir", start, other)
	d.add("file", start+"/startup.py", socket, other+"/agent.sock")
	p := everyday()
	readOnly := sessionRule(start)
	readOnly.Access = policy.Read
	p.Rules = append(p.Rules, readOnly)
	p.UnixSockets = []policy.UnixSocket{{Path: socket}}
	profile := profileOf(t, Translate(p, host), d)
	writes := []string{"file-write-data", "file-write-create", "file-write-unlink", "file-link", "file-clone"}
	for _, test := range []struct {
		path string
		want bool
	}{{own + "/x", true}, {start + "/x", false}, {other + "/x", false}} {
		for _, operation := range writes {
			if got := ask(t, profile, file(operation, test.path)); got != test.want {
				t.Errorf("%s of %s: %t", operation, test.path, got)
			}
		}
		for _, operation := range []string{"network-outbound", "network-bind"} {
			if got := ask(t, profile, unixSocket(operation, test.path)); got != test.want {
				t.Errorf("%s of %s: %t", operation, test.path, got)
			}
		}
	}
	for _, operation := range []string{"process-exec*", "file-map-executable"} {
		for path, want := range map[string]bool{own + "/x": true, start + "/x": false, other + "/x": false} {
			if got := ask(t, profile, file(operation, path)); got != want {
				t.Errorf("%s of %s: %t", operation, path, got)
			}
		}
	}
	for path, want := range map[string]bool{
		own + "/x": true, start + "/startup.py": true, other + "/x": false, stateDir + "/trust.json": false,
	} {
		if got := ask(t, profile, file("file-read-data", path)); got != want {
			t.Errorf("read %s: %t", path, got)
		}
	}
	// The sidecar's filter of an agent of keys listens there.
	for path, want := range map[string]bool{socket: true, other + "/agent.sock": false} {
		if got := ask(t, profile, unixSocket("network-outbound", path)); got != want {
			t.Errorf("connect to %s: %t", path, got)
		}
		if got := ask(t, profile, file("file-read-metadata", path)); got != want {
			t.Errorf("look up %s: %t", path, got)
		}
	}
	for _, operation := range writes {
		if ask(t, profile, file(operation, socket)) {
			t.Errorf("%s of the filter's socket", operation)
		}
	}
	if ask(t, profile, unixSocket("network-bind", socket)) {
		t.Error("the filter's socket can be bound")
	}
}

// APFS takes a long s for an s, and a kelvin sign for a k.
func TestProfile_MissingProtectedPathsInOtherLetters(t *testing.T) {
	t.Parallel()
	p := everyday()
	p.Protected = append(p.Protected, policy.Protected{Path: "/Users/u/p/hooks"})
	profile := profileOf(t, Translate(p, host), mac())
	for path, want := range map[string]bool{
		"/Users/u/p/.vscode/x": false, "/Users/u/p/.VSCODE": false, "/Users/u/p/.v\u017fcode/tasks.json": false,
		"/Users/u/p/hoo\u212as": false, "/Users/u/p/HOO\u212a\u017f/x": false,
		"/Users/u/p/.vcode": true, "/Users/u/p/.vxcode": true, "/Users/u/p/hoos": true, // controls
	} {
		for _, question := range []question{file("file-write-create", path), unixSocket("network-bind", path)} {
			if got := ask(t, profile, question); got != want {
				t.Errorf("%s: %t", question, got)
			}
		}
	}
}

// A denial without the tag is not found in the log. Rules that deny what another one
// allows need it as well as the default.
func TestProfile_TagsEveryDenialOfThePolicys(t *testing.T) {
	t.Parallel()
	tagged := map[string]int{}
	kinds := []string{"PROTECTED", "PINNED", "CLOSED", "default"}
	for _, rule := range ruleLines(profileOf(t, Translate(everyday(), host), mac()).Text) {
		line := rule.String()
		for _, kind := range kinds {
			switch {
			case rule.action != "deny" || !strings.Contains(line, kind):
			case strings.Contains(line, `(with message "`+host.Tag+`")`):
				tagged[kind]++
			default:
				t.Errorf("no tag: %s", line)
			}
		}
	}
	for _, kind := range kinds {
		if tagged[kind] == 0 {
			t.Errorf("control: no rule of the kind %s", kind)
		}
	}
}
