package starter

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	everything = Found{
		Toolchains: []Toolchain{{"go", "/usr/bin/go"}, {"node", "/a\n\"b\", // */ x"}}, Agent: true,
	}
	standard = Choice{document.ModeStandard, document.ApplyToTool}
)

// decoded are the settings of a file; it fails if anything in it is wrong.
func decoded(t *testing.T, text []byte) document.Sandbox {
	t.Helper()
	block, problem := document.Decode(text, "linux", document.Sidecar)
	if problem != nil || len(block.Problems) > 0 {
		t.Fatalf("%v %v\n%s", problem, block, text)
	}
	return block.Values
}

func TestLook_FindsProgramsAndTheAgent(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "s")
	must(t, err)
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "agent")
	server, err := net.Listen("unix", socket)
	must(t, err)
	defer server.Close()
	program := func(name string) (string, error) {
		if slices.Contains([]string{"cargo", "npm", "python3"}, name) {
			return "/usr/bin/" + name, nil
		}
		return "", os.ErrNotExist
	}
	for value, agent := range map[string]bool{
		socket: true, "": false, "relative": false, dir: false, dir + "/none": false,
	} {
		found := Look(func(string) string { return value }, program)
		if !slices.Equal(found.names(), []string{"node", "python", "rust"}) || found.Agent != agent {
			t.Errorf("with the socket %q: %+v", value, found)
		}
	}
}

func TestText_IsASettingsFile(t *testing.T) {
	t.Parallel()
	for _, mode := range []document.Mode{document.ModeStrict, document.ModeStandard, document.ModeRelaxed} {
		for _, found := range []Found{everything, {}} {
			s := decoded(t, found.Text(Choice{mode, document.ApplyToTool}))
			if *s.Mode != mode || *s.ApplyTo != document.ApplyToTool || !*s.Enabled ||
				len(s.AllowedUnixSockets) > 0 {
				t.Errorf("%s: %+v", mode, s)
			}
			if want := len(found.Toolchains); mode != document.ModeStrict && len(s.Toolchains) != want ||
				mode == document.ModeStrict && len(s.Toolchains) > 0 {
				t.Errorf("%s: toolchains %q", mode, s.Toolchains)
			}
		}
	}
}

func TestWrite_ANewFileIsTheUsersAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "settings.json")
	written, err := Write(path, "linux", everything, standard)
	must(t, err)
	text, err := os.ReadFile(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if !written.Created || len(written.Toolchains) != 2 || len(written.Beside) > 0 ||
		info.Mode().Perm() != 0o600 || string(text) != string(everything.Text(standard)) {
		t.Errorf("%+v, mode %s\n%s", written, info.Mode(), text)
	}
	if again, err := os.Stat(filepath.Dir(path)); err != nil || again.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", again, err)
	}
}

func TestWrite_AFileWithoutABlockGetsOne(t *testing.T) {
	t.Parallel()
	for _, before := range []string{
		`{}`, "{\n}\n", `{"theme": "One" /* mine */}`,
		"{\n  // looks\n  \"theme\": \"One\",\n  \"terminal\": {\n    \"shell\": \"zsh\", // mine\n  },\n}\n// end",
		`{"terminal": {"sandbox": {"allow_network": false}}}`, "\ufeff{}",
		`{"terminal": {"sandbox": {}}, "macos": {"terminal": {"sandbox": {"enabled": false}}}}`,
	} {
		path := filepath.Join(t.TempDir(), "settings.json")
		must(t, os.WriteFile(path, []byte(before), 0o640))
		must(t, os.Chmod(path, 0o640)) // whatever the umask
		link := path + ".link"
		must(t, os.Symlink("settings.json", link))
		written, err := Write(link, "linux", everything, standard)
		if err != nil {
			t.Errorf("%s: %v", before, err)
			continue
		}
		after, err := os.ReadFile(path)
		must(t, err)
		info, err := os.Lstat(link)
		must(t, err)
		target, err := os.Stat(path)
		must(t, err)
		if written.Created || info.Mode()&os.ModeSymlink == 0 || target.Mode().Perm() != 0o640 {
			t.Errorf("%s: created %t, the link is %s, the file %s", before, written.Created, info.Mode(), target.Mode())
		}
		block, problem := document.Decode(after, "linux", document.Editor)
		if problem != nil || len(block.Problems) > 0 || !*block.Values.Enabled ||
			*block.Values.ApplyTo != document.ApplyToTool || len(block.Values.Toolchains) != 2 {
			t.Errorf("%s becomes %s", before, after)
		}
		for _, kept := range []string{
			"theme", "// looks", "/* mine */", "// mine", "// end", `"allow_network": false`,
		} {
			if strings.Contains(before, kept) != strings.Contains(string(after), kept) {
				t.Errorf("%s: %s\n%s", kept, before, after)
			}
		}
	}
}

func TestWrite_WhatIsThereStays(t *testing.T) {
	t.Parallel()
	for _, before := range []string{
		``, `// only a comment`, `{`, `[]`, `{"terminal": {"sandbox": {"enabled": false}}}`, `{"terminal": null}`,
		`{"terminal": {"sandbox": {"mode": "off"}}}`, `{"terminal": {"sandbox": {"tool": {"enabled": false}}}}`,
		`{"linux": {"terminal": {"sandbox": {"enabled": false}}}}`, `{"terminal": {"sandbox": {"aply_to": "both"}}}`,
		`{"terminal": {"sandbox": "on"}}`, `{"terminal": {"sandbox": {"apply_to": "neither"}}}`,
		`{"linux": {"terminal": {"sandbox": {"apply_to": "terminal"}}}}`,
	} {
		path := filepath.Join(t.TempDir(), "settings.json")
		must(t, os.WriteFile(path, []byte(before), 0o600))
		_, err := Write(path, "linux", everything, standard)
		var paste *PasteError
		after, _ := os.ReadFile(path)
		if !errors.As(err, &paste) || string(after) != before || paste.Reason == "" {
			t.Errorf("%s: %v, now %s", before, err, after)
			continue
		}
		text := paste.Text
		if before != "" && !strings.HasPrefix(before, "//") { // else it is the whole file
			text = "{" + text + "}"
		}
		if s := decoded(t, []byte(text)); !*s.Enabled || *s.ApplyTo != document.ApplyToTool {
			t.Errorf("to paste: %s", paste.Text)
		}
	}
}

func TestWrite_HasNothingToPasteIntoADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Write(dir, "linux", everything, standard)
	var paste *PasteError
	if err == nil || errors.As(err, &paste) || !strings.Contains(err.Error(), dir+`" is a directory`) {
		t.Errorf("%v", err)
	}
}

func TestWrite_FollowsNoDanglingSymlink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "settings.json")))
	must(t, os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "config")))
	for _, path := range []string{"settings.json", "config/settings.json", "config/sandbox-sidecar/settings.json"} {
		written, err := Write(filepath.Join(dir, path), "linux", everything, standard)
		if err == nil || written.Created {
			t.Errorf("%s: %+v, %v", path, written, err)
		}
	}
	names, err := os.ReadDir(dir)
	must(t, err)
	if len(names) != 2 {
		t.Errorf("made: %v", names)
	}
}

// What the file says itself counts more than what is added.
func TestWrite_SaysWhatTheFileKeeps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		keys   string
		mode   document.Mode
		lists  int
		beside []string
	}{
		{``, document.ModeStandard, 2, nil},
		{``, document.ModeStrict, 0, nil},
		{`"toolchains": ["go"]`, document.ModeStandard, 0, nil},
		{
			`"toolchains": ["go"], "allow_network": true`, document.ModeStrict, 0,
			[]string{"allow_network", "toolchains"},
		},
		{`"toolchains": [], "allow_network": false`, document.ModeStrict, 0, nil},
		{
			`"tool": {"allow_network": false}, "apply_to": "both"`, document.ModeStandard, 2,
			[]string{"tool.allow_network"},
		},
		{`"system_paths": {"read_only": ["/etc"]}`, document.ModeStrict, 0, []string{"system_paths.read_only"}},
	} {
		path := filepath.Join(t.TempDir(), "settings.json")
		must(t, os.WriteFile(path, []byte(`{"terminal": {"sandbox": {`+test.keys+`}}}`), 0o600))
		written, err := Write(path, "linux", everything, Choice{test.mode, document.ApplyToBoth})
		must(t, err)
		if len(written.Toolchains) != test.lists || !slices.Equal(written.Beside, test.beside) {
			t.Errorf("%s, %s: %+v", test.keys, test.mode, written)
		}
	}
}

func TestWrite_LeavesApplyToToTheUser(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "settings.json")
	must(t, os.WriteFile(path, []byte(`{"terminal": {"sandbox": {"apply_to": "tool"}}}`), 0o600))
	_, err := Write(path, "linux", everything, Choice{document.ModeStandard, document.ApplyToBoth})
	var paste *PasteError
	if !errors.As(err, &paste) || !strings.Contains(paste.Text, `"apply_to": "both"`) ||
		paste.Reason != `line 1 says already what is sandboxed: apply_to is "tool"` {
		t.Errorf("%v", err)
	}
	_, err = Write(path, "linux", everything, Choice{document.ModeStandard, document.ApplyToTool})
	must(t, err)
}
