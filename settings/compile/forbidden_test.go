package compile

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

func forbiddenTree(t *testing.T) resolve.FS {
	return resolvetest.Tree(t, map[string]string{
		userFile: "", "/home/u/project/": "", "/proc/self/": "", "/sys/fs/cgroup/unified/": "",
		"/opt/sidecar/bin/sandbox-sidecar":          "",
		"/home/u/.local/state/sandbox-sidecar/run/": "", "/home/u/.config/sandbox-sidecar/": "",
		"/home/u/kernel":               "-> /sys/fs",
		"/run/user/1/sandbox-sidecar/": "", "/home/u/procession/": "", "/home/u/root": "-> /",
		"/home/u/.config/zed/themes/": "",
	})
}

func forbiddenSnapshot(t *testing.T, user, project string) *Snapshot {
	s := snapshotOf(t, forbiddenTree(t), user, project)
	s.OwnPaths = []string{"/opt/sidecar/bin/sandbox-sidecar"}
	s.Host.Env["XDG_RUNTIME_DIR"] = "/run/user/1"
	return s
}

// Each entry counts neither for the user nor for a project, in each list that
// grants writing. The diagnostic names its key.
func TestForbidden_GrantsThatUndoTheSandboxDoNotCount(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/", "/.", "/..", "~/root", "/proc", "/proc/self", "/proc/self/oom_score_adj", "/sys", "/sys/fs/cgroup",
		"/sys/fs/cgroup/unified/x",
		"~/kernel", "~/kernel/cgroup", "~/.config/zed", "~/.config/zed/settings.json", "~/.config/zed/themes",
		"~/.local/state/sandbox-sidecar", "~/.local/state/sandbox-sidecar/run/x",
		"~/.local/state/sandbox-sidecar/trust.json",
		"$XDG_RUNTIME_DIR/sandbox-sidecar", "/opt/sidecar/bin/sandbox-sidecar", "~/project/../.config/zed",
	} {
		for key, block := range map[string]string{
			"additional_read_write_paths": `{"enabled": true, "additional_read_write_paths": ["` + path + `"]}`,
			"system_paths.read_write":     `{"enabled": true, "system_paths": {"read_write": ["` + path + `"]}}`,
		} {
			got := forbiddenSnapshot(t, block, "").Compile(document.KindTool)
			if text := said(got, userFile); !strings.Contains(text, key) || !strings.Contains(text, "error") ||
				!strings.Contains(text, "undoes the sandbox") {
				t.Errorf("%s: %s: said %q", key, path, text)
			}
			for _, rule := range got.Policy.Rules {
				if rule.Access.Has(policy.Write) && rule.Path != "/home/u/project" &&
					rule.Origin.File != policy.OriginBuiltIn {
					t.Errorf("%s: %s: granted %s for writing", key, path, rule.Path)
				}
			}
			if len(got.Warnings) == 0 {
				t.Errorf("%s: %s: no warning when a session starts", key, path)
			}
		}
		got := forbiddenSnapshot(t, `{"enabled": true}`,
			`{"additional_read_write_paths": ["`+path+`"]}`).Compile(document.KindTool)
		if text := said(got, projectFile); !strings.Contains(text, "undoes the sandbox") {
			t.Errorf("a project's %s: said %q", path, text)
		}
	}
}

// The same paths may be read and their neighbours written. The user may grant a
// directory that contains such a place.
func TestForbidden_EverythingElseCounts(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]string{
		`{"additional_read_only_paths": ["/"]}`:                                 "/",
		`{"additional_read_only_paths": ["/proc", "/sys"]}`:                     "/sys",
		`{"additional_executable_paths": ["/opt/sidecar/bin"]}`:                 "/opt/sidecar/bin",
		`{"additional_read_write_paths": ["~/procession"]}`:                     "/home/u/procession",
		`{"additional_read_write_paths": ["~/.local/state"]}`:                   "/home/u/.local/state",
		`{"additional_read_write_paths": ["~"]}`:                                "/home/u",
		`{"additional_read_write_paths": ["/opt/sidecar"]}`:                     "/opt/sidecar",
		`{"additional_read_write_paths": ["~/.local/state/sandbox-sidecar-2"]}`: "/home/u/.local/state/sandbox-sidecar-2",
	} {
		got := forbiddenSnapshot(t, block, "").Compile(document.KindTool)
		if accessOf(got, want) == "none" || strings.Contains(said(got, userFile), "undoes") {
			t.Errorf("%s: %s is granted %s; said %q", block, want, accessOf(got, want), said(got, userFile))
		}
	}
}

// A project in such a place can be read, but not written.
func TestForbidden_ProjectsThere(t *testing.T) {
	t.Parallel()
	for project, want := range map[string]string{
		"/": "read,execute", "/home/u/root": "read,execute", "/sys/fs/cgroup": "read,execute",
		"/home/u/.config/zed":                  "read,execute",
		"/home/u/.local/state/sandbox-sidecar": "read,execute", "/home/u/.local": "read,write,execute",
		"/home/u": "read,write,execute",
	} {
		s := forbiddenSnapshot(t, `{"enabled": true}`, "")
		s.ProjectDir = project
		got := s.Compile(document.KindTool)
		if access := accessOf(got, got.Policy.Project); access != want {
			t.Errorf("project %s: granted %s, want %s", project, access, want)
		}
		if reported := strings.Contains(strings.Join(got.Warnings, "\n"),
			"is granted for reading only"); reported != (want == "read,execute") {
			t.Errorf("project %s: warnings %q", project, got.Warnings)
		}
	}
}
