package compile

import (
	"os"
	"strings"
	"testing"
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
