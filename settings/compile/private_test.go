package compile

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// withModes gives files of a tree in memory other permissions.
func withModes(f resolve.FS, mode func(path string) fs.FileMode) resolve.FS {
	lstat, list := f.Lstat, f.Modes
	f.Lstat = func(path string) (fs.FileMode, error) {
		found, err := lstat(path)
		if found.IsRegular() {
			found |= mode(path)
		}
		return found, err
	}
	f.Modes = func(path string) (resolve.Modes, error) {
		found, err := list(path)
		entries := slices.Clone(found.Entries)
		for i, entry := range entries {
			if entry.Type.IsRegular() {
				entries[i].Type = mode(filepath.Join(path, entry.Name))
			}
		}
		return resolve.NewModes(entries), err
	}
	return f
}

// secretsOnly makes the files private whose names say so.
func secretsOnly(path string) fs.FileMode {
	if strings.Contains(filepath.Base(path), "secret") {
		return 0o600
	}
	return 0o644
}

const (
	asStandard = `{"enabled": true}`
	asHome     = `{"enabled": true, "additional_read_only_paths": ["~"]}`
	asRelaxed  = `{"mode": "relaxed"}`
)

func TestPrivate_FilesAreHiddenInWideGrants(t *testing.T) {
	t.Parallel()
	home := map[string]string{"/home/u/project/secret": "", "/srv/secret": ""}
	for _, name := range []string{
		".config/a/secret", ".config/secret", ".config/a/b/c/secret", ".config/a/plain", ".config/htop/secret",
		".config/a/b/c/d/secret", ".config/fish/fish-secret", ".config/git/secret", ".b/secret", ".b/plain",
		".local/share/c/secret", ".local/share/c/d/e/secret", ".cache/d/secret", ".bashrc-secret", "papers/secret",
		".npm/secret", ".codex/secret", "dotfiles/secret", "dotfiles/other/secret",
	} {
		home["/home/u/"+name] = ""
	}
	home["/home/u/.config/linked-secret"] = "-> ../dotfiles/secret"
	home["/home/u/.config/linked"] = "-> ../dotfiles/other"
	home["/home/u/.config/away"] = "-> /srv/secret"
	for i := range 3 * 16 {
		home[fmt.Sprintf("/home/u/.config/store/secret%d", i)] = ""
		home[fmt.Sprintf("/home/u/.config/mixed/plain%d", i)] = ""
		home[fmt.Sprintf("/home/u/.config/program%d/plain", i)] = ""
	}
	home["/home/u/.config/mixed/secret"] = ""
	f := withModes(resolvetest.InMemory(home), secretsOnly)
	for _, test := range []struct {
		name, hiddenBy string // the modes in which it is hidden
		seenBy         string
	}{
		{".config/a/secret", "standard home relaxed", ""},
		{".config/secret", "standard home relaxed", ""},
		{".config/a/b/c/secret", "standard home relaxed", ""},
		{".config/store/secret1", "standard home relaxed", ""},
		{".config/mixed/secret", "standard home relaxed", ""},
		{".b/secret", "home relaxed", ""},
		{".local/share/c/d/e/secret", "home relaxed", ""},
		{".cache/d/secret", "home relaxed", ""},
		{".bashrc-secret", "home relaxed", ""},
		{".codex/secret", "home relaxed", ""},
		{"dotfiles/secret", "home relaxed", ""},
		{"dotfiles/other/secret", "home relaxed", ""},
		{".config/a/plain", "", "standard home relaxed"},
		{".config/mixed/plain1", "", "standard home relaxed"},
		{".config/htop/secret", "", "standard home relaxed"},
		{".config/fish/fish-secret", "", "standard home relaxed"},
		{".config/git/secret", "", "standard home relaxed"},
		{".config/a/b/c/d/secret", "", "standard home relaxed"}, // too deep
		{"project/secret", "", "standard home relaxed"},
		{"papers/secret", "", "home relaxed"},
		{".npm/secret", "", "home relaxed"}, // a cache of a toolchain
		{".b/plain", "", "home relaxed"},
	} {
		for mode, text := range map[string]string{"standard": asStandard, "home": asHome, "relaxed": asRelaxed} {
			p := snapshotOf(t, f, text, "").Compile(document.KindTool).Policy
			path := "/home/u/" + test.name
			hidden, is := p.HiddenAt(path)
			want := strings.Contains(test.hiddenBy, mode)
			if is != want || want && hidden.Origin.Reason != PrivateReason {
				t.Errorf("%s: %s is hidden: %t by %+v", mode, path, is, hidden.Origin)
			}
			if strings.Contains(test.seenBy, mode) && !p.At(path).Has(policy.Read) {
				t.Errorf("%s: %s cannot be read", mode, path)
			}
		}
	}
	if p := snapshotOf(t, f, asRelaxed, "").Compile(document.KindTool).Policy; p.At("/srv/secret") == 0 {
		t.Error("a link leads out of the home directory, and what it leads to is hidden")
	}
}

// Who grants the directory of one program, or one file, means what is in it.
func TestPrivate_NarrowGrantsShowFiles(t *testing.T) {
	t.Parallel()
	f := withModes(resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/home/u/.config/a/secret": "", "/home/u/.config/b/secret": "",
		"/home/u/.claude/secret": "",
	}), secretsOnly)
	for _, test := range []struct{ settings, shown, hidden string }{
		{`{"enabled": true, "additional_read_only_paths": ["~/.config/a"]}`, ".config/a/secret", ".config/b/secret"},
		{
			`{"enabled": true, "additional_read_only_paths": ["~/.config/a/secret"]}`, ".config/a/secret",
			".config/b/secret",
		},
		{`{"enabled": true, "additional_read_only_paths": ["~", "~/.config/b"]}`, ".config/b/secret", ".config/a/secret"},
		{`{"mode": "relaxed", "toolchains": ["claude"]}`, ".claude/secret", ".config/a/secret"},
		{`{"enabled": true, "additional_read_write_paths": ["~/.config"]}`, "project", ".config/a/secret"},
	} {
		p := snapshotOf(t, f, test.settings, "").Compile(document.KindTool).Policy
		if !p.At("/home/u/" + test.shown).Has(policy.Read) {
			t.Errorf("%s: %s cannot be read: %v", test.settings, test.shown, p.Hidden)
		}
		if _, hidden := p.HiddenAt("/home/u/" + test.hidden); !hidden {
			t.Errorf("%s: %s is not hidden", test.settings, test.hidden)
		}
	}
	s := snapshotOf(t, f, asStandard, `{"additional_read_only_paths": ["~/.config/a"]}`)
	if p := s.Compile(document.KindTool).Policy; p.At("/home/u/.config/a/secret") != 0 {
		t.Error("a project's file shows a private file")
	}
}

// Where the user's umask makes all files private, their modes say nothing. The
// files of one program do not decide that, however many they are.
func TestPrivate_AnUmaskSaysNothing(t *testing.T) {
	t.Parallel()
	files := map[string]string{"/home/u/project/": "", "/home/u/.config/gh/hosts.yml": ""}
	for i := range 40 {
		files[fmt.Sprintf("/home/u/.config/p%d/file", i)] = ""
		files[fmt.Sprintf("/home/u/.config/store/d%d/secret", i)] = ""
	}
	const said = "most files of your home directory are private"
	for name, test := range map[string]struct {
		mode  func(string) fs.FileMode
		usual bool
	}{
		"all":         {func(string) fs.FileMode { return 0o600 }, true},
		"one program": {secretsOnly, false},
	} {
		c := snapshotOf(t, withModes(resolvetest.InMemory(files), test.mode), asStandard, "").Compile(document.KindTool)
		if _, hidden := c.Policy.HiddenAt("/home/u/.config/store/d1/secret"); hidden == test.usual {
			t.Errorf("%s: hidden: %t", name, hidden)
		}
		if c.Policy.At("/home/u/.config/gh/hosts.yml") != 0 || c.Policy.At("/home/u/.config/p1/file") == 0 {
			t.Errorf("%s: the table does not decide: %v", name, c.Policy.Hidden)
		}
		if got := strings.Contains(strings.Join(c.Warnings, "\n"), said); got != test.usual {
			t.Errorf("%s: the warnings are %q", name, c.Warnings)
		}
	}
}

// A bound that is hit is said, and what is nearest is found all the same.
func TestPrivate_SaysWhatIsNotLookedAt(t *testing.T) {
	t.Parallel()
	home := map[string]string{"/home/u/project/": "", "/home/u/.config/a/secret": ""}
	many := resolvetest.InMemory(home)
	list := many.Modes
	many.Modes = func(path string) (resolve.Modes, error) {
		if strings.Count(path, "/") < 5 && strings.HasPrefix(path, "/home/u/.config") {
			found, _ := list(path)
			entries := found.Entries
			for i := range 200 {
				entries = append(entries, fsguard.Entry{Name: fmt.Sprint(i), Type: fs.ModeDir})
			}
			return resolve.NewModes(entries), nil
		}
		return list(path)
	}
	remote := resolvetest.InMemory(home)
	remote.Modes = func(string) (resolve.Modes, error) { return resolve.Modes{}, fsguard.ErrRemote }
	for _, test := range []struct {
		says   string
		f      resolve.FS
		hidden bool
	}{
		{"too many files", many, true},
		{"is on a remote file system", remote, false},
		{"", resolvetest.InMemory(home), true},
	} {
		c := snapshotOf(t, withModes(test.f, secretsOnly), asStandard, "").Compile(document.KindTool)
		if _, hidden := c.Policy.HiddenAt("/home/u/.config/a/secret"); hidden != test.hidden {
			t.Errorf("%q: hidden: %t", test.says, hidden)
		}
		said := strings.Join(c.Warnings, "\n")
		if test.says == "" && said != "" || !strings.Contains(said, test.says) {
			t.Errorf("the warnings are %q, want %q", said, test.says)
		}
	}
}

// What the user's configuration of git names is not hidden, or git would end with
// an error; unless a session may have named it.
func TestPrivate_GitReadsWhatItsConfigurationNames(t *testing.T) {
	t.Parallel()
	tree := map[string]string{
		"/home/u/project/": "",
		"/home/u/.gitconfig": "[core]\n\texcludesFile = ~/.config/a/secret-ignored\n" +
			"[include]\n\tpath = ~/.config/linked\n\tpath = ~/.config/full/secret\n\tpath = ~/shared/inc\n",
		"/home/u/.config/a/secret-ignored": "", "/home/u/.config/a/secret": "", "/home/u/.config/b/secret": "",
		"/home/u/.config/linked": "-> l/secret", "/home/u/.config/l/secret": "", "/home/u/.config/full/secret": "",
		"/home/u/shared/inc": "[commit]\n\ttemplate = ~/.config/b/secret\n",
	}
	for i := range 20 {
		tree[fmt.Sprintf("/home/u/.config/full/secret%d", i)] = ""
		tree[fmt.Sprintf("/home/u/.config/p%d/plain", i)] = ""
	}
	f := withModes(resolvetest.InMemory(tree), secretsOnly)
	for settings, hidden := range map[string][]string{
		`{"enabled": true}`: {"a/secret", "full/secret1", "full/secret19"},
		`{"enabled": true, "additional_read_write_paths": ["~/shared"]}`: {"a/secret", "b/secret", "full/secret1"},
	} {
		p := snapshotOf(t, f, settings, "").Compile(document.KindTool).Policy
		for _, name := range hidden {
			if p.At("/home/u/.config/"+name) != 0 {
				t.Errorf("%s: %s can be read", settings, name)
			}
		}
		for _, name := range []string{"a/secret-ignored", "l/secret", "full/secret", "b/secret"} {
			if !slices.Contains(hidden, name) && !p.At("/home/u/.config/"+name).Has(policy.Read) {
				t.Errorf("%s: %s cannot be read", settings, name)
			}
		}
	}
}

// The search of a home directory ends at a bound, however many files are in it:
// two million here, as no directory ends. What is not hidden for that is said.
func TestPrivate_AHomeOfMillionsIsNotSearchedWhole(t *testing.T) {
	t.Parallel()
	for _, block := range []string{asHome, asRelaxed} {
		f := resolvetest.InMemory(map[string]string{"/home/u/project/": "", "/home/u/.config/a/secret": ""})
		names, lstats := 0, 0
		lstat, list := f.Lstat, f.Modes
		f.Lstat = func(path string) (fs.FileMode, error) {
			lstats++
			return lstat(path)
		}
		f.Modes = func(path string) (resolve.Modes, error) {
			if !strings.HasPrefix(path, "/home/u/") {
				return list(path)
			}
			entries := []fsguard.Entry{{Name: "plain", Type: 0o644}}
			for i := range 200 {
				entries = append(entries, fsguard.Entry{Name: fmt.Sprint(".d", i), Type: fs.ModeDir | 0o755})
			}
			names += len(entries)
			return resolve.NewModes(entries), nil
		}
		s := snapshotOf(t, f, block, "")
		warnings := s.Compile(document.KindTool).Warnings
		if names > 50_000 || lstats > 5000 { // two searches, of 20,000 each
			t.Errorf("%s: %d names, %d files are looked at", block, names, lstats)
		}
		if names < 15_000 {
			t.Errorf("%s: only %d names are looked at", block, names)
		}
		if text := fmt.Sprint(warnings); !strings.Contains(text, "too many files in your home directory") {
			t.Errorf("%s: not said: %s", block, text)
		}
	}
}

// What git names as certificates is shown if it is that. A key beside them stays
// hidden, and so does a directory.
func TestPrivate_CertificatesOfGit(t *testing.T) {
	t.Parallel()
	const key = testCertificate + "-----BEGIN PRIVATE KEY-----\n"
	f := withModes(resolvetest.InMemory(map[string]string{
		"/home/u/project/": "", "/home/u/.gitconfig": "[http]\n\tsslCAInfo = ~/.config/corp/secret.pem\n" +
			"\tsslCAPath = ~/.config/more\n\tproxySSLCAInfo = ~/.config/ca/secret.pem\n",
		"/home/u/.config/corp/secret.pem": key, "/home/u/.config/more/secret.pem": key,
		"/home/u/.config/ca/secret.pem": testCertificate,
	}), secretsOnly)
	p := snapshotOf(t, f, asStandard, "").Compile(document.KindTool).Policy
	for name, want := range map[string]bool{"corp": true, "more": true, "ca": false} {
		if _, hidden := p.HiddenAt("/home/u/.config/" + name + "/secret.pem"); hidden != want {
			t.Errorf("%s: hidden %t", name, hidden)
		}
	}
}
