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

// On a Mac an Xcode of any name may be the chosen one. Its programs load the
// frameworks beside its developer directory.
func TestBaseline_TheChosenXcode(t *testing.T) {
	t.Parallel()
	const chosen, other = "/Applications/Xcode_16.4.app/Contents", "/Applications/Other.app/Contents"
	for _, link := range []string{"/private/var/db/xcode_select_link", "/private/var/select/developer_dir"} {
		s := snapshotOf(t, resolvetest.InMemory(map[string]string{
			"/home/u/project/": "", chosen + "/Developer/usr/bin/git": "", other + "/Developer/usr/bin/git": "",
			link: "-> " + chosen + "/Developer",
		}), `{"enabled": true}`, "")
		s.Host.Platform = "darwin"
		p := s.Compile(document.KindTool).Policy
		for _, path := range []string{"/Developer/usr/lib/libxcrun.dylib", "/SharedFrameworks/a", "/version.plist"} {
			if got := p.At(chosen + path); got != policy.Read|policy.Execute {
				t.Errorf("%s: %s: %s", link, path, got)
			}
			if got := p.At(other + path); got != 0 {
				t.Errorf("%s: control: %s of another Xcode: %s", link, path, got)
			}
		}
		if got := p.At("/Applications/Xcode_16.4.app/other"); got != 0 {
			t.Errorf("%s: beside the contents: %s", link, got)
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
