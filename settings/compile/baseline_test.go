package compile

import (
	"os"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// docs/settings.md lists what every session gets.
func TestBaselines_AreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## What every session gets\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for platform, label := range map[string]string{"linux": "on Linux", "darwin": "on macOS"} {
		for key, paths := range baselines()[platform] {
			var rows strings.Builder
			for row := range strings.Lines(section) {
				if strings.Contains(row, label) && strings.Contains(row, "`"+key+"`") {
					rows.WriteString(row)
				}
			}
			for _, p := range paths {
				if !strings.Contains(rows.String(), "`"+p.path+"`") {
					t.Errorf("%s: %s: %s is not in docs/settings.md", platform, key, p.path)
				}
			}
		}
	}
	for _, name := range homeDotfiles {
		if !strings.Contains(section, "`~/"+name+"`") {
			t.Errorf("home dotfiles: %s is not in docs/settings.md", name)
		}
	}
}

// The users that a system keeps elsewhere are readable, and not their passwords,
// which root could read.
func TestBaseline_RootReadsNoPasswordsElsewhere(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/var/lib/extrausers/passwd": "", "/var/lib/extrausers/shadow": "",
	}), `{"enabled": true}`, "")
	s.Host.Root = true
	p := s.Compile(document.KindTool).Policy
	if p.At("/var/lib/extrausers/passwd") != policy.Read || p.At("/var/lib/extrausers/shadow") != 0 {
		t.Errorf("%v", p.Hidden)
	}
}
