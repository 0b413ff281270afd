package managed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// organisation is what programs of a test find in /etc/sandbox-sidecar.
type organisation struct {
	t       *testing.T
	etc     string
	wrapper []string
}

// newOrganisation makes an empty one. Files of this user are root's in the
// namespace, as long as nobody else can write them.
func newOrganisation(t *testing.T) *organisation {
	t.Helper()
	harness.RequireSandbox(t)
	o := &organisation{t: t, etc: filepath.Join(t.TempDir(), "etc")}
	if err := os.MkdirAll(o.path(""), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(o.etc, "empty", "sandbox-sidecar"), 0o755); err != nil {
		t.Fatal(err)
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		harness.Skip(t, "mount_namespace", err.Error())
	}
	o.wrapper = []string{unshare, "--mount"}
	if os.Geteuid() != 0 {
		o.wrapper = append(o.wrapper, "--map-root-user")
	}
	o.wrapper = append(o.wrapper, "/bin/sh", "-c",
		`mount -t overlay overlay -o "lowerdir=$0/empty:/etc" /etc && mount --bind "$0/sandbox-sidecar" /etc/sandbox-sidecar &&
		exec "$@"`, o.etc)
	if out, err := exec.Command(o.wrapper[0], append(o.wrapper[1:], "true")...).CombinedOutput(); err != nil {
		harness.Skip(t, "mount_namespace", fmt.Sprintf("%v: %s", err, out))
	}
	return o
}

// path is that of a file in the organisation's directory.
func (o *organisation) path(name string) string { return filepath.Join(o.etc, "sandbox-sidecar", name) }

// writes makes a file of the organisation's.
func (o *organisation) writes(name, content string) {
	o.t.Helper()
	if err := os.MkdirAll(filepath.Dir(o.path(name)), 0o755); err != nil {
		o.t.Fatal(err)
	}
	if err := os.WriteFile(o.path(name), []byte(content), 0o644); err != nil {
		o.t.Fatal(err)
	}
}

// wrap lets a command find the organisation's files.
func (o *organisation) wrap(command *exec.Cmd) {
	command.Args = append(append([]string{}, o.wrapper...), append([]string{command.Path}, command.Args[1:]...)...)
	command.Path = o.wrapper[0]
}

// run runs the sidecar and returns what it prints, and whether it succeeds.
func (o *organisation) run(w *harness.World, args ...string) (string, bool) {
	o.t.Helper()
	return o.runBinary(harness.Binary(o.t), w, nil, args...)
}

// command is one that runs where the organisation's file is.
func (o *organisation) command(binary string, w *harness.World, env []string, args ...string) *exec.Cmd {
	o.t.Helper()
	command := exec.Command(binary, args...)
	command.Dir = w.Project
	command.Env = append(harness.Environ(w), env...)
	o.wrap(command)
	return command
}

func (o *organisation) runBinary(binary string, w *harness.World, env []string, args ...string) (string, bool) {
	o.t.Helper()
	out, err := o.command(binary, w, env, args...).CombinedOutput()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		o.t.Fatal(err)
	}
	return string(out), err == nil
}

// secret makes a file that only a program without a sandbox can read.
func secret(t *testing.T, w *harness.World) string {
	t.Helper()
	path := filepath.Join(w.Outside, "secret")
	harness.Write(t, path, "the secret\n")
	return path
}

const everything = `{"required": {"enabled": true, "mode": "standard", "on_unavailable": "refuse"}}`

// TestManaged_NothingAUserChangesEscapesIt tries every way that a user has to
// turn the sandbox off, with and without the organisation's file.
func TestManaged_NothingAUserChangesEscapesIt(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	path := secret(t, w)
	harness.Write(t, w.UserSettings(), harness.Off())
	elsewhere := filepath.Join(w.Home, "elsewhere")
	harness.Write(t, filepath.Join(elsewhere, "sandbox-sidecar", "settings.json"), harness.Off())
	named := filepath.Join(w.Home, "named.json")
	harness.Write(t, named, harness.Off())
	renamed := filepath.Join(w.Home, "another-name")
	harness.CopyProgram(t, harness.Binary(t), renamed)
	off := []string{"exec", "--", "cat", path}
	for name, way := range map[string]struct {
		binary string
		env    []string
		args   []string
	}{
		"own file":        {args: off},
		"--mode off":      {args: []string{"exec", "--mode", "off", "--", "cat", path}},
		"--settings":      {args: []string{"exec", "--settings", named, "--", "cat", path}},
		"XDG_CONFIG_HOME": {env: []string{"XDG_CONFIG_HOME=" + elsewhere}, args: off},
		"HOME":            {env: []string{"HOME=" + elsewhere}, args: off},
		"PATH":            {env: []string{"PATH=/usr/bin"}, args: off},
		"name":            {binary: renamed, args: off},
	} {
		binary := way.binary
		if binary == "" {
			binary = harness.Binary(t)
		}
		free, bound := newOrganisation(t), newOrganisation(t)
		bound.writes("settings.json", everything)
		if out, ok := free.runBinary(binary, w, way.env, way.args...); !ok || !strings.Contains(out, "the secret") {
			t.Errorf("%s: without the organisation's file: %s", name, out)
		}
		if out, ok := bound.runBinary(binary, w, way.env, way.args...); ok || strings.Contains(out, "the secret") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestManaged_AFileThatIsWrong tries what may be in the place of a file.
func TestManaged_AFileThatIsWrong(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	path := secret(t, w)
	harness.Write(t, w.UserSettings(), harness.Off())
	const refused, ignored = "nothing starts until it is fixed", "error: is ignored"
	for name, row := range map[string]struct {
		spoil func(o *organisation) error
		says  string
	}{
		"symlink": {func(o *organisation) error {
			o.writes("real.json", everything)
			return os.Symlink("real.json", o.path("settings.json"))
		}, refused},
		"half written": {func(o *organisation) error {
			o.writes("settings.json", everything[:40])
			return nil
		}, refused},
		"empty": {func(o *organisation) error { o.writes("settings.json", ""); return nil }, refused},
		"100 MB": {func(o *organisation) error {
			o.writes("settings.json", everything)
			return os.Truncate(o.path("settings.json"), 100<<20)
		}, refused},
		"misspelt": {func(o *organisation) error {
			o.writes("settings.json", `{"required": {"enabeld": true}}`)
			return nil
		}, refused},
		"wrong place": {func(o *organisation) error {
			o.writes("settings.json", `{"terminal": {"sandbox": {"enabled": true}}}`)
			return nil
		}, refused},
		"twice": {func(o *organisation) error {
			o.writes("settings.json", `{"required": {"enabled": true}, "required": {}}`)
			return nil
		}, refused},
		"directory": {func(o *organisation) error { return os.Mkdir(o.path("settings.json"), 0o755) }, refused},
		"drop-in":   {func(o *organisation) error { o.writes("settings.d/a.json", "{"); return nil }, refused},
		"a file for settings.d": {func(o *organisation) error {
			o.writes("settings.d", everything)
			return nil
		}, refused},
		"a file for the directory": {func(o *organisation) error {
			empty := filepath.Join(o.etc, "empty", "sandbox-sidecar") // where it is mounted
			return errors.Join(os.Remove(o.path("")), os.Remove(empty),
				os.WriteFile(o.path(""), []byte(everything), 0o644), os.WriteFile(empty, nil, 0o644))
		}, refused},
		"writable": {func(o *organisation) error {
			o.writes("settings.json", everything)
			return os.Chmod(o.path("settings.json"), 0o664)
		}, ignored},
		"writable directory": {func(o *organisation) error {
			o.writes("settings.json", everything)
			return os.Chmod(o.path(""), 0o777)
		}, ignored},
	} {
		o := newOrganisation(t)
		if err := row.spoil(o); err != nil {
			t.Fatal(err)
		}
		out, ok := o.run(w, "exec", "--", "cat", path)
		if !strings.Contains(out, row.says) || ok != (row.says == ignored) {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestManaged_FilesThatContradictEachOther: what is required of each counts.
func TestManaged_FilesThatContradictEachOther(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	path := secret(t, w)
	o := newOrganisation(t)
	o.writes("settings.json", everything)
	o.writes("settings.d/50-off.json", `{"required": {"mode": "off", "allow_network": true}}`)
	o.writes("settings.d/90-defaults.json", `{"defaults": {"enabled": false}}`)
	if out, ok := o.run(w, "exec", "--", "cat", path); ok {
		t.Errorf("it runs: %s", out)
	}
}

func TestManaged_PolicyAndExplainNameIt(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	path := secret(t, w)
	o := newOrganisation(t)
	o.writes("settings.json", `{"required": {"mode": "strict"}}`)
	harness.Write(t, w.UserSettings(), harness.Settings(harness.Sandbox{"allow_network": true}))
	for _, args := range [][]string{{"policy"}, {"explain", "read", path}} {
		if out, _ := o.run(w, args...); !strings.Contains(out, "set by your organisation") {
			t.Errorf("%s: %s", args, out)
		}
	}
}

// What a session has for itself is bounded, too: the history of its project. The
// control is the same without the requirement.
func TestManaged_BoundsTheHistory(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	free, bound := newOrganisation(t), newOrganisation(t)
	bound.writes("settings.json", `{"required": {"additional_read_write_paths": []}}`)
	file, did := free.run(w, "exec", "--", "/bin/sh", "-c", `: >>"$HISTFILE" && printf %s "$HISTFILE"`)
	if !did || !strings.HasSuffix(file, "_history") {
		t.Fatalf("the control writes no history: %s", file)
	}
	for name, o := range map[string]*organisation{"free": free, "bound": bound} {
		explained, may := o.run(w, "explain", "--check", "write", file)
		output, did := o.run(w, "exec", "--", "/bin/sh", "-c", ": >>'"+file+"'")
		if may != did {
			harness.Breach(t, "%s: explain says %s, the kernel %t: %s", name, explained, did, output)
		}
		if did != (name == "free") {
			t.Errorf("%s: %s", name, output)
		}
		if named, _ := o.run(w, "exec", "--", "/bin/sh", "-c", "echo ${HISTFILE-none}"); (named == "none\n") == did {
			t.Errorf("%s: HISTFILE is %s", name, named)
		}
	}
}

// TestManaged_IsWatched: a file that appears while the editor runs counts for
// the next session, and the editor hears of it.
func TestManaged_IsWatched(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	path := secret(t, w)
	o := newOrganisation(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Off(), Wrap: o.wrap})
	spawn := func() string {
		out, _ := e.Tool("cat " + path)
		return out
	}
	if out := spawn(); !strings.Contains(out, "the secret") {
		t.Fatalf("without a file: %s", out)
	}
	o.writes("settings.json", everything)
	if out := spawn(); strings.Contains(out, "the secret") {
		t.Errorf("with the file: %s", out)
	}
}

// TestManaged_TheEditorHearsOfEachFile: of one that appears, changes or goes, in
// a directory that was not there when the editor started.
func TestManaged_TheEditorHearsOfEachFile(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	o := newOrganisation(t)
	e := harness.Start(t, w, harness.Options{Wrap: o.wrap})
	changed := make(chan []string, 100)
	client.On(e.Client, protocol.SettingsChanged, func(p protocol.SettingsChangedParams) { changed <- p.Files })
	await := func(name string) {
		t.Helper()
		end := deadline.After(harness.Timeout)
		for {
			select {
			case files := <-changed:
				if slices.Contains(files, "/etc/sandbox-sidecar/"+name) {
					return
				}
			case <-end:
				t.Fatalf("no change of %s is reported", name)
			}
		}
	}
	o.writes("settings.json", everything)
	await("settings.json")
	o.writes("settings.d/a.json", "{}")
	await("settings.d/a.json")
	o.writes("settings.d/a.json", everything)
	await("settings.d/a.json")
	if err := os.Remove(o.path("settings.d/a.json")); err != nil {
		t.Fatal(err)
	}
	await("settings.d/a.json")
}

// TestManaged_DefaultsAreBelowTheUsersFile: they hold until the user says
// something else.
func TestManaged_DefaultsAreBelowTheUsersFile(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	path := secret(t, w)
	o := newOrganisation(t)
	o.writes("settings.json", `{"defaults": {"mode": "standard"}}`)
	if out, ok := o.run(w, "exec", "--", "cat", path); ok || strings.Contains(out, "the secret") {
		t.Errorf("the defaults do not count: %s", out)
	}
	harness.Write(t, w.UserSettings(), harness.Off())
	if out, ok := o.run(w, "exec", "--", "cat", path); !ok || !strings.Contains(out, "the secret") {
		t.Errorf("the user's own settings do not count: %s", out)
	}
}

// TestManaged_ATrustedProjectDoesNotLoosenIt: trust is the user's, and less than
// what is required.
func TestManaged_ATrustedProjectDoesNotLoosenIt(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	path := secret(t, w)
	harness.Write(t, w.UserSettings(), harness.Settings(nil))
	harness.Write(t, filepath.Join(w.Project, ".zed", "settings.json"),
		harness.Settings(harness.Sandbox{"additional_read_only_paths": []string{w.Outside}}))
	o := newOrganisation(t)
	digest := harness.Digest(t, w.ProjectPath(".zed/settings.json"))
	if out, ok := o.run(w, "trust", "--digest", digest, w.Project); !ok {
		t.Fatalf("trust: %s", out)
	}
	if out, ok := o.run(w, "exec", "--", "cat", path); !ok || !strings.Contains(out, "the secret") {
		t.Errorf("without the organisation's file: %s", out)
	}
	o.writes("settings.json", `{"required": {"enabled": true, "hidden_paths": ["`+w.Outside+`"]}}`)
	if out, ok := o.run(w, "exec", "--", "cat", path); ok || strings.Contains(out, "the secret") {
		t.Errorf("with it: %s", out)
	}
}

// TestManaged_WhatAUserAllowsDoesNotLoosenIt: neither "Allow…", which writes the
// user's settings, nor an answer to a question.
func TestManaged_WhatAUserAllowsDoesNotLoosenIt(t *testing.T) {
	t.Parallel()
	for _, bound := range []bool{false, true} {
		for _, way := range []string{"allow", "answer"} {
			t.Run(fmt.Sprintf("%s %t", way, bound), func(t *testing.T) {
				t.Parallel()
				w := harness.NewWorldOutsideDefaults(t)
				path := secret(t, w)
				o := newOrganisation(t)
				if bound {
					o.writes("settings.json", `{"required": {"enabled": true, "hidden_paths": ["`+w.Outside+`"]}}`)
				}
				block := harness.Sandbox{}
				if way == "answer" {
					block["on_denied"] = "ask"
				}
				e := harness.Start(t, w, harness.Options{
					Settings: harness.Settings(block), Wrap: o.wrap,
					Initialize: func(p *protocol.InitializeParams) { p.Capabilities.Approvals = true },
				})
				client.OnRequest(e.Client, protocol.RequestAccess,
					func(protocol.RequestAccessParams) protocol.RequestAccessResult {
						return protocol.RequestAccessResult{Decision: protocol.DecisionSession}
					})
				if way == "allow" {
					harness.Call(e, protocol.SettingsAllow, protocol.SettingsAllowParams{
						ProjectDir: w.Project, Scope: "user",
						Suggestion: protocol.Suggestion{
							Setting: "additional_read_only_paths", Value: []byte(strconv.Quote(path)),
						},
					})
				}
				if out, _ := e.Tool("cat " + path); strings.Contains(out, "the secret") == bound {
					t.Errorf("%s", out)
				}
			})
		}
	}
}

// TestManaged_TheAuditTrailIsTheOrganisations: whatever a user sets, it is kept,
// in the home directory of the user database.
func TestManaged_TheAuditTrailIsTheOrganisations(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	o := newOrganisation(t)
	account := filepath.Join(w.Outside, "account")
	harness.Write(t, filepath.Join(o.etc, "empty", "passwd"),
		fmt.Sprintf("root:x:0:0::%s:/bin/sh\nnobody:x:%d:65534::%[1]s:/bin/sh\n", account, max(1, os.Getuid())))
	harness.Must(t, os.Chmod(filepath.Join(o.etc, "empty", "passwd"), 0o644))
	trail := func() string {
		return harness.Read(t, filepath.Join(account, ".local/state/sandbox-sidecar/audit/audit.jsonl"))
	}
	off := filepath.Join(w.Home, "off.json")
	harness.Write(t, off, harness.Settings(harness.Sandbox{"enabled": false, "audit": "off", "audit_required": false}))
	harness.Write(t, w.UserSettings(), harness.Read(t, off))
	elsewhere := filepath.Join(w.Home, "elsewhere")
	run := func(mark string, env []string, args ...string) {
		t.Helper()
		args = append(append([]string{"exec"}, args...), "--", "echo", mark)
		if out, ok := o.runBinary(harness.Binary(t), w, env, args...); !ok {
			t.Errorf("%s: %s", mark, out)
		}
	}
	run("control", nil)
	if trail() != "" {
		t.Fatal("there is a trail that nobody asks for")
	}
	o.writes("settings.json", `{"required": {"audit": "file", "audit_required": true}}`)
	for mark, way := range map[string]struct{ env, args []string }{
		"own-file":   {},
		"flag":       {args: []string{"--settings", off}},
		"mode":       {args: []string{"--mode", "off"}},
		"state-home": {env: []string{"XDG_STATE_HOME=" + elsewhere}},
		"home":       {env: []string{"HOME=" + elsewhere}},
		"config":     {env: []string{"XDG_CONFIG_HOME=" + elsewhere}},
	} {
		run(mark, way.env, way.args...)
		if text := trail(); !strings.Contains(text, `"argv":["echo","`+mark+`"]`) ||
			!strings.Contains(text, `"managed":true`) {
			t.Errorf("%s is not noted: %s", mark, text)
		}
	}
	out, ok := o.run(w, "policy")
	if !ok || !strings.Contains(strings.Join(strings.Fields(out), " "),
		`audit "file" /etc/sandbox-sidecar/settings.json:1, set by your organisation`) {
		t.Errorf("policy does not say who asks for it: %s", out)
	}
	// A trail that the user breaks lets nothing start.
	harness.Must(t, os.RemoveAll(filepath.Join(account, ".local/state/sandbox-sidecar/audit")))
	harness.Write(t, filepath.Join(account, ".local/state/sandbox-sidecar/audit"), "")
	if out, ok := o.run(w, "exec", "--", "echo", "unnoted"); ok || strings.Contains(out, "\nunnoted") {
		t.Errorf("it starts: %s", out)
	}
}
