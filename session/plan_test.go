package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// store opens settings in a home of their own, with a project beside it.
func store(t *testing.T, block string, env ...string) (opened *settings.Store, home, project string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, project = filepath.Join(root, "home"), filepath.Join(root, "project")
	file := filepath.Join(home, ".config/sandbox-sidecar/settings.json")
	text := `{"terminal": {"sandbox": ` + block + `}}`
	err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.Mkdir(project, 0o700),
		os.WriteFile(file, []byte(text), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	opened, err = settings.Open(settings.Options{Env: append(env, "HOME="+home), Once: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return opened, home, project
}

func TestAdmit_Decides(t *testing.T) {
	t.Parallel()
	const on, off, mistake = `{"enabled": true}`, `{"enabled": false}`, `{"enabled": true, "no_such_key": 1}`
	confined, inDoubt := Wish{Confined: true}, errors.New("any DoubtError")
	for name, test := range map[string]struct {
		block string
		wish  Wish
		// admitted by kind, and the refusal otherwise
		terminal, tool error
	}{
		"on":                         {on, Wish{}, nil, nil},
		"off":                        {off, Wish{}, nil, nil},
		"off, must be confined":      {off, confined, ErrOff, ErrOff},
		"off for tools":              {`{"enabled": true, "apply_to": "terminal"}`, confined, nil, ErrOff},
		"a mistake":                  {mistake, Wish{}, nil, inDoubt},
		"a mistake, must be certain": {mistake, Wish{Certain: true}, inDoubt, inDoubt},
		"another policy was agreed":  {on, Wish{Agreed: "0"}, ErrPolicyChanged, ErrPolicyChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened, _, project := store(t, test.block)
			for kind, want := range map[settings.Kind]error{
				settings.KindTerminal: test.terminal, settings.KindTool: test.tool,
			} {
				wish := test.wish
				wish.Kind = kind
				admitted, err := New(opened, opened.Snapshot(project), wish).Admit()
				var doubtful *DoubtError
				if errors.As(err, &doubtful) && doubtful.Doubt != nil {
					err = inDoubt
				}
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", kind, err, want)
				}
				if (admitted == nil) != (err != nil) {
					t.Errorf("%s: %v with %v", kind, admitted, err)
				}
			}
		})
	}
}

func TestAdmit_RefusesAProjectBehindASessionsLink(t *testing.T) {
	t.Parallel()
	opened, home, project := store(t, `{"enabled": true, "system_paths": {"read_write": []}}`)
	repository := filepath.Join(filepath.Dir(home), "repository")
	link, own := filepath.Join(repository, "link"), filepath.Join(home, "link")
	err := errors.Join(os.MkdirAll(filepath.Join(repository, ".git"), 0o700), os.Symlink(project, link),
		os.Symlink(project, own))
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(opened, opened.Snapshot(link), Wish{Kind: settings.KindTool}).Admit()
	var failed *spawn.Error
	if !errors.As(err, &failed) || !strings.Contains(failed.Hint, project) {
		t.Errorf("a session could have made the link: %v", err)
	}
	if _, err := New(opened, opened.Snapshot(own), Wish{Kind: settings.KindTool}).Admit(); err != nil {
		t.Errorf("control: the user has made the link: %v", err)
	}
}

func TestAdmit_TellsANoteOnceAndMakesDirectories(t *testing.T) {
	t.Parallel()
	opened, home, project := store(t, `{"enabled": true, "toolchains": ["go"]}`,
		"HTTPS_PROXY=http://user:secret@127.0.0.1:9")
	plan := func(wish Wish) (told, unmade []string) {
		wish.Kind = settings.KindTool
		admitted, err := New(opened, opened.Snapshot(project), wish).Admit()
		if err != nil {
			return nil, nil
		}
		return admitted.Told, admitted.Unmade
	}
	cache := filepath.Join(home, ".cache/go-build")
	if told, _ := plan(Wish{Agreed: "another"}); told != nil {
		t.Errorf("a session that was refused has used up the note: %q", told)
	}
	if _, err := os.Stat(cache); err == nil {
		t.Error("a session that was refused has made a directory")
	}
	if told, unmade := plan(Wish{}); len(told) != 1 || !strings.Contains(told[0], "password") || unmade != nil {
		t.Errorf("first: %q, %q", told, unmade)
	}
	if info, err := os.Stat(cache); err != nil || !info.IsDir() {
		t.Errorf("the directory of a toolchain: %v", err)
	}
	cache = filepath.Dir(cache)
	err := errors.Join(os.RemoveAll(cache), os.WriteFile(cache, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if told, unmade := plan(Wish{}); told != nil || len(unmade) != 1 {
		t.Errorf("again: %q, %q", told, unmade)
	}
}

func TestStart_CompletesTheRequest(t *testing.T) {
	t.Parallel()
	opened, home, project := store(t, `{"enabled": true, "on_denied": "ignore", "on_unavailable": "warn",
		"system_paths": {"read_write": []}}`)
	wish := Wish{Kind: settings.KindTool, Facts: Facts{Programs: []string{"/opt/p"}, Variables: []string{"V"}}}
	start := func(wish Wish, fail error) (got spawn.Request, err error) {
		admitted, err := New(opened, opened.Snapshot(project), wish).Admit()
		if err != nil {
			t.Fatal(err)
		}
		return Start(admitted, spawn.Request{Dir: project}, func(r spawn.Request) (spawn.Request, error) {
			return r, fail
		})
	}
	got, err := start(wish, nil)
	if err != nil || !spawn.IsID(got.ID) || !got.Tool || got.Full || got.PolicyID() != got.Policy.ID() ||
		!got.Policy.At("/opt/p").Has(policy.Execute) || !got.Policy.Environment.Allows("V") ||
		got.Policy.OnUnavailable != policy.Warn || got.Policy.OnDenied != policy.Ignore {
		t.Errorf("%+v, %v", got, err)
	}
	plain := New(opened, opened.Snapshot(project), Wish{Kind: settings.KindTool})
	if id := New(opened, opened.Snapshot(project), wish).PolicyID(); id != plain.PolicyID() || id == got.PolicyID() {
		t.Error("the id of the kind knows the facts of one session")
	}
	got, err = start(Wish{Kind: settings.KindTool, Agreed: plain.PolicyID()}, nil)
	if err != nil || !got.Full {
		t.Errorf("agreed: %+v, %v", got, err)
	}
	got, err = start(Wish{Kind: settings.KindTerminal, Confined: true, Reported: true}, nil)
	if err != nil || got.Tool || got.Policy.OnUnavailable != policy.Refuse || got.Policy.OnDenied != policy.Report {
		t.Errorf("confined: %+v, %v", got, err)
	}
	failed := &spawn.Error{
		Attempt: "execute", Path: filepath.Join(home, "tool/x"), Cause: os.ErrPermission, Refused: true,
	}
	var named *spawn.Error
	if _, err := start(wish, failed); !errors.As(err, &named) || !strings.Contains(named.Hint, "executable_paths") {
		t.Errorf("the setting is not named: %v", err)
	}
	failed.Refused = false
	if _, err := start(wish, failed); !errors.As(err, &named) || named.Hint != "" {
		t.Errorf("control: the sandbox did not refuse it: %v", err)
	}
}

// A file of settings between the working directory and the project is no file of
// the project's. Zed reads it.
func TestAdmit_TellsOfNestedSettings(t *testing.T) {
	t.Parallel()
	opened, _, project := store(t, `{"enabled": true}`)
	write := func(dir, content string) {
		t.Helper()
		file := filepath.Join(project, dir, ".zed", "settings.json")
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	const block = `{"terminal": {"sandbox": {"allow_network": false}}}`
	write("", block)
	write("bound", block)
	write("bound/more", block)
	write("theirs", `{"tab_size": 2}`)
	write("wrong", "{")
	for _, row := range []struct{ dir, told string }{
		{"", ""},
		{".", ""},
		{"theirs", ""},
		{"none", ""},
		{"../beside", ""},
		{"bound/deep/er", "bound"},
		{"bound", ""},
		{"bound/more", "bound/more"},
		{"wrong", "wrong"},
	} {
		wish := Wish{Kind: settings.KindTool}
		if row.dir != "" {
			wish.Dir = filepath.Join(project, row.dir)
		}
		admitted, err := New(opened, opened.Snapshot(project), wish).Admit()
		if err != nil {
			t.Fatal(err)
		}
		want := "no effect"
		if row.told != "" {
			want = filepath.Join(project, row.told, ".zed", "settings.json") + `" has no effect here`
		}
		if said := strings.Join(admitted.Told, "\n"); strings.Contains(said, want) != (row.told != "") {
			t.Errorf("%q: told %q", row.dir, said)
		}
		if admitted.Policy.Network.Allowed {
			t.Errorf("%q: control: the project's own file does not count", row.dir)
		}
	}
}
