package compile

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// packageIn is a tree with a repository at top, which has the project in it.
func packageIn(top string) map[string]string {
	return map[string]string{
		top + "/.git/HEAD": "", top + "/.git/objects/": "", top + "/.git/refs/": "", top + "/.git/config": "",
		top + "/packages/app/": "", top + "/go.work": "",
	}
}

// inPackage is a snapshot of settings in the package of top.
func inPackage(t *testing.T, tree map[string]string, top, user, project, required string) *Snapshot {
	t.Helper()
	f := resolvetest.InMemory(tree)
	s := New(Input{Host: settingstest.Host(), FS: f, ProjectDir: top + "/packages/app"}, nil, nil)
	s.AskParent = func(resolve.Host, string, git.Parent, git.Answer) string { return "" }
	if required != "" {
		s.UserStates = []source.State{settingstest.Managed(t, managed.File, "{}", required)}
	}
	s.UserStates = append(s.UserStates, settingstest.State(t, userFile, user))
	if project != "" {
		state := settingstest.State(t, top+"/packages/app/.zed/settings.json", project)
		s.ProjectState = &state
	}
	return s
}

const mono = "/work/mono"

// The stricter of user, project and organisation counts.
func TestParent_NobodyOpensMoreThanTheUser(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ user, project, required, want string }{
		{want: "read"},
		{user: "git", want: "git"},
		{user: "off", want: "off"},
		{user: "off", project: "read", want: "off"},
		{user: "git", project: "read", want: "git"},
		{project: "git", want: "git"},
		{project: "off", want: "off"},
		{user: "git", project: "off", want: "off"},
		{required: "off", want: "off"},
		{user: "off", required: "read", want: "off"},
		{user: "read", project: "read", required: "git", want: "git"},
	} {
		block := func(value string) string {
			if value == "" {
				return `{"enabled": true}`
			}
			return fmt.Sprintf(`{"enabled": true, "parent_repository": %q}`, value)
		}
		required := ""
		if test.required != "" {
			required = fmt.Sprintf(`{"parent_repository": %q}`, test.required)
		}
		s := inPackage(t, packageIn(mono), mono, block(test.user), block(test.project), required)
		c := s.Compile(document.KindTool)
		got := "off"
		if i := slices.IndexFunc(c.Policy.Rules, func(r policy.Rule) bool { return r.Path == mono+"/.git" }); i >= 0 {
			rule := c.Policy.Rules[i]
			if got = "git"; rule.Access != policy.Read|policy.Write || rule.Guarded != policy.Write {
				t.Errorf("%+v: %+v", test, rule)
			}
			for _, name := range []string{"/hooks", "/config", "/commondir", "/info/attributes"} {
				if !slices.ContainsFunc(c.Policy.Protected, func(p policy.Protected) bool {
					return p.Path == mono+"/.git"+name
				}) {
					t.Errorf("%+v: %s is not protected", test, name)
				}
			}
		}
		if accessOf(c, mono+"/go.work") != accessOf(c, "/nowhere") {
			got = "read"
		}
		if got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

// A trusted file that opens more asks for it.
func TestParent_ATrustedFileAsks(t *testing.T) {
	t.Parallel()
	s := inPackage(t, packageIn(mono), mono, `{"enabled": true, "parent_repository": "off"}`,
		`{"parent_repository": "read"}`, "")
	asks := fmt.Sprint(s.Project().Asks)
	if !strings.Contains(asks, "sessions may read the repository above the project") {
		t.Errorf("%s", asks)
	}
}

// What is no package of a repository opens nothing.
func TestParent_DoesNotCount(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		top    string
		more   map[string]string
		user   string
		counts bool
	}{
		"control":             {top: mono, counts: true},
		"a top directory":     {top: "/workspace", counts: true},
		"home":                {top: "/home/u"},
		"above home":          {top: "/home"},
		"the root":            {top: ""},
		"etc":                 {top: "/etc"},
		"below etc":           {top: "/etc/nixos"},
		"the system":          {top: "/usr/local"},
		"shared by all":       {top: "/tmp"},
		"a nested repository": {top: mono, more: map[string]string{mono + "/packages/app/.git/HEAD": ""}},
		"an empty .git":       {top: mono, more: map[string]string{mono + "/packages/.git/": ""}},
		"a bare one": {top: mono, more: map[string]string{
			mono + "/packages/HEAD": "", mono + "/packages/objects/": "", mono + "/packages/refs/": "",
		}},
		"secrets": {top: "/home/u/dot", more: map[string]string{
			"/home/u/.ssh": "-> dot/ssh", "/home/u/dot/ssh/id": "",
		}},
		"no secrets":           {top: "/home/u/dot", counts: true},
		"granted, a directory": {top: mono, user: `"additional_read_write_paths": ["/work"]`, counts: true},
		"granted to the other kind": {
			top: mono, user: `"terminal": {"additional_read_write_paths": ["/work"]}`,
		},
	} {
		user := `{"enabled": true}`
		if test.user != "" {
			user = `{"enabled": true, ` + test.user + `}`
		}
		tree := packageIn(test.top)
		for path, text := range test.more {
			tree[path] = text
		}
		c := inPackage(t, tree, test.top, user, "", "").Compile(document.KindTool)
		got := slices.ContainsFunc(c.Policy.Rules, func(r policy.Rule) bool {
			return r.Path == test.top+"/.git" && r.Origin.Key == parentKey
		})
		if got != test.counts {
			t.Errorf("%s: %t, want %t: %q", name, got, test.counts, c.Warnings)
		}
	}
}

// A session that may write the root of the working tree could have made a file
// that names any repository.
func TestParent_AFileThatASessionCouldMake(t *testing.T) {
	t.Parallel()
	tree := packageIn("/work/other")
	delete(tree, "/work/other/packages/app/")
	for path, text := range map[string]string{
		mono + "/.git": "gitdir: /work/other/.git/worktrees/mono\n", mono + "/packages/app/": "",
		"/work/other/.git/worktrees/mono/gitdir":    mono + "/.git\n",
		"/work/other/.git/worktrees/mono/commondir": "../..\n", "/work/other/.git/worktrees/mono/HEAD": "",
	} {
		tree[path] = text
	}
	for user, want := range map[string]bool{
		`{"enabled": true}`: true, `{"enabled": true, "additional_read_write_paths": ["/work/mono"]}`: false,
	} {
		c := inPackage(t, tree, mono, user, "", "").Compile(document.KindTool)
		got := slices.ContainsFunc(c.Policy.Rules, func(r policy.Rule) bool { return r.Path == "/work/other/.git" })
		if got != want || want == strings.Contains(strings.Join(c.Warnings, "\n"), "a session could have made it") {
			t.Errorf("%s: %t: %q", user, got, c.Warnings)
		}
	}
}

// Variables of other packages stay hidden, and what the user hides in a project.
func TestParent_HidesSecrets(t *testing.T) {
	t.Parallel()
	tree := packageIn(mono)
	for _, file := range []string{
		".env", ".env.example", "packages/other/.env.local", "packages/app/.env", "secrets/key", ".env.d/x",
		"node_modules/x/.env",
	} {
		tree[mono+"/"+file] = ""
	}
	tree[mono+"/packages/.env"] = "-> app/.env" // it is the project's own
	hidden := func(user string) (list []string) {
		for _, h := range inPackage(t, tree, mono, user, "", "").Compile(document.KindTool).Policy.Hidden {
			if policy.Contains(mono, h.Path) {
				if strings.Contains(h.Path, "/.env") != (h.Origin.Reason == VariablesReason) {
					t.Errorf("%s: %+v", h.Path, h.Origin)
				}
				list = append(list, strings.TrimPrefix(h.Path, mono+"/"))
			}
		}
		return list
	}
	for user, want := range map[string][]string{
		`{"enabled": true}`: {".env", "packages/other/.env.local"},
		`{"enabled": true, "hidden_paths": ["secrets", "go.w*", "."]}`: {
			".env", "go.work", "packages/other/.env.local", "secrets",
		},
		`{"enabled": true, "hidden_paths": ["**/key"]}`: {
			".env", "packages/other/.env.local", "secrets/key",
		},
		`{"enabled": true, "parent_repository": "git", "hidden_paths": ["**/key"]}`: nil,
		`{"enabled": true, "parent_repository": "git"}`:                             nil,
	} {
		own := func(path string) bool { return strings.HasPrefix(path, "packages/app/") }
		got := slices.DeleteFunc(hidden(user), own)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", user, got, want)
		}
	}
}

// The search for secrets ends, and says so.
func TestParent_SaysThatATreeIsLarge(t *testing.T) {
	t.Parallel()
	tree := packageIn(mono)
	c := inPackage(t, tree, mono, `{"enabled": true}`, "", "").Compile(document.KindTool)
	const said = "has many directories"
	if text := strings.Join(c.Warnings, "\n"); strings.Contains(text, said) {
		t.Errorf("control: %s", text)
	}
	// What nobody can search is none of many.
	for err, want := range map[error]bool{
		fs.ErrPermission: false, fsguard.ErrNoAnswer: true, resolve.ErrNotAllFound: true,
	} {
		s := inPackage(t, tree, mono, `{"enabled": true}`, "", "")
		dirs := s.FS.Dirs
		s.FS.Dirs = func(path string) ([]string, error) {
			if path == mono {
				return nil, err
			}
			return dirs(path)
		}
		text := strings.Join(s.Compile(document.KindTool).Warnings, "\n")
		if strings.Contains(text, said) != want {
			t.Errorf("%v: %s", err, text)
		}
	}
	for i := range maxSecretDirs {
		tree[fmt.Sprintf("%s/packages/%d/", mono, i)] = ""
	}
	c = inPackage(t, tree, mono, `{"enabled": true}`, "", "").Compile(document.KindTool)
	if text := strings.Join(c.Warnings, "\n"); !strings.Contains(text, said) {
		t.Errorf("nothing is said: %s", text)
	}
}

// Whether git takes the repository is asked each time.
func TestParent_AsksAgain(t *testing.T) {
	t.Parallel()
	why := ""
	s := remembering(inPackage(t, packageIn(mono), mono, `{"enabled": true}`, "", ""))
	s.AskParent = func(resolve.Host, string, git.Parent, git.Answer) string { return why }
	before := s.With(nil)
	if !recalled(before, s.With(nil)) {
		t.Error("control: nothing has changed")
	}
	why = "git refuses it"
	if recalled(before, s.With(nil)) {
		t.Error("the evaluation from before the change was taken")
	}
}
