package compile

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// Whatever grants /tmp, or a directory above it, sessions do not see the one of
// other programs, unless a key lets them write it on purpose.
func TestTemporary_OwnUnlessWritableOnPurpose(t *testing.T) {
	t.Parallel()
	const relaxed, dropped = `"enabled": true, "mode": "relaxed"`, `"system_paths": {"read_write": []}`
	for _, test := range []struct {
		user, project string
		shared        bool
	}{
		{`{"enabled": true}`, "{}", false},
		{`{` + relaxed + `}`, "{}", false},
		{`{` + relaxed + `, ` + dropped + `}`, "{}", false},
		{`{` + relaxed + `}`, `{` + dropped + `}`, false},
		{`{"enabled": true, "additional_read_only_paths": ["/"], ` + dropped + `}`, "{}", false},
		{`{"enabled": true, "additional_read_only_paths": ["/"]}`, `{` + dropped + `}`, false},
		{`{"enabled": true, "additional_read_only_paths": ["/tmp"]}`, `{` + dropped + `}`, false},
		{`{"enabled": true, "system_paths": {"read_only": ["/"], "read_write": []}}`, "{}", false},
		{`{"enabled": true, "system_paths": {"read_write": ["/var"]}}`, "{}", false},
		{`{"enabled": true, "system_paths": {"read_write": ["/var", "/var/tmp"]}}`, "{}", false},
		{`{"enabled": true, "additional_read_write_paths": ["/tmp"]}`, "{}", true},
		{`{"enabled": true, "additional_read_write_paths": ["/var"]}`, "{}", true},
		{`{` + relaxed + `, "temporary_files": "shared"}`, "{}", true},
	} {
		f := resolvetest.InMemory(map[string]string{
			"/tmp/": "", "/var/tmp/": "", "/home/u/project/": "", "/usr/bin/": "",
		})
		dir := "/tmp"
		if strings.Contains(test.user, "/var") {
			dir = "/var/tmp"
		}
		for name, s := range map[string]*Snapshot{
			"trusted":     trusting(t, f, test.user, test.project),
			"not trusted": snapshotOf(t, f, test.user, test.project),
		} {
			p := s.Compile(document.KindTool).Policy
			if sees := p.Outside(dir) != 0; sees != test.shared || p.At(dir) == 0 {
				t.Errorf("%s, %s, %s: sessions see the %s outside: %t; private: %v", test.user, test.project, name,
					dir, sees, p.Temporary)
			}
		}
	}
}

// A required "private" wins over grants of the organisation and the user. What a
// project asks for within those opens nothing of the /tmp outside.
func TestTemporary_RequiredOpensNothingToProjects(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(map[string]string{"/tmp/other/": "", "/home/u/project/": "", "/usr/bin/": ""})
	const user = `{"enabled": true, "additional_read_write_paths": ["/tmp"], "system_paths": {"read_write": []}}`
	for _, required := range []string{
		`{"temporary_files": "private"}`,
		`{"temporary_files": "private", "system_paths": {"read_write": ["/dev/null"]},
			"additional_read_write_paths": ["/tmp"]}`,
	} {
		for _, project := range []string{"{}", `{"additional_read_write_paths": ["/tmp/other"]}`} {
			p := managedSnapshot(t, f, "{}", required, user, project).Compile(document.KindTool).Policy
			if access := p.Outside("/tmp/other/x"); access != 0 {
				t.Errorf("%s, %s: sessions may %v the files of other programs", required, project, access)
			}
		}
	}
	control := snapshotOf(t, f, user, "{}").Compile(document.KindTool).Policy
	if control.Outside("/tmp/other/x") == 0 {
		t.Error("control: without the requirement nothing is granted")
	}
}
