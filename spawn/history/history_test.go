package history

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// request is about a bash in a project, with a home directory of its own.
func request(t *testing.T) (Request, string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Request{
		Project: "/work/My Project", Policy: &policy.Policy{Restricted: true}, Outer: []string{"HOME=" + home},
		Program: "/bin/bash",
	}, home
}

func value(s Session, name string) string {
	got, _ := lookUpSet(s.Env, name)
	return got
}

func TestPrepare_NamesAFileForEachShell(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"/bin/bash": "bash_history", "-zsh": "zsh_history", "zsh-5.9": "bash_history", "ksh93": "ksh_history",
		"node": "bash_history",
	} {
		r, home := request(t)
		r.Program = program
		s, err := Prepare(r)
		if err != nil {
			t.Fatal(err)
		}
		file := value(s, "HISTFILE")
		if filepath.Base(file) != want ||
			!strings.HasPrefix(file, home+"/.local/state/sandbox-sidecar/history/My_Project-") {
			t.Errorf("%s: HISTFILE is %q", program, file)
		}
		if zdotdir := value(s, "ZDOTDIR"); (zdotdir != "") != (want == "zsh_history") {
			t.Errorf("%s: ZDOTDIR is %q", program, zdotdir)
		}
	}
}

// A start-up file of Python's that the settings pass is the user's.
func TestPrepare_PythonsStartUpFile(t *testing.T) {
	t.Parallel()
	for outer, want := range map[string]bool{"PYTHONSTARTUP=/own": false, "": true} {
		r, _ := request(t)
		r.Policy.Environment.Allowed = []string{"PYTHONSTARTUP"}
		if outer != "" {
			r.Outer = append(r.Outer, outer)
		}
		s, err := Prepare(r)
		if got := value(s, "PYTHONSTARTUP"); err != nil || (got != "") != want {
			t.Errorf("%q: %q, %v", outer, got, err)
		}
		if _, err := os.Stat(value(s, "PYTHONSTARTUP")); want && err != nil {
			t.Error(err)
		}
	}
}

// A project's directory is its own, and the same every time.
func TestPrepare_ADirectoryForEachProject(t *testing.T) {
	t.Parallel()
	r, _ := request(t)
	dirs := map[string]bool{}
	for _, project := range []string{"/a/x", "/b/x", "/a/x", "/a/X", "/a/\xff", "/"} {
		r.Project = project
		s, err := Prepare(r)
		if err != nil {
			t.Fatal(err)
		}
		dirs[filepath.Dir(value(s, "HISTFILE"))] = true
	}
	if len(dirs) != 5 {
		t.Errorf("directories: %v", dirs)
	}
}

// What sessions could change, or others could, is not used.
func TestPrepare_RefusesADirectoryOfOthers(t *testing.T) {
	t.Parallel()
	r, home := request(t)
	r.Policy.Rules = []policy.Rule{{Path: home, Access: policy.ReadWrite}}
	if _, err := Prepare(r); err == nil || !strings.Contains(err.Error(), "sessions may write it") {
		t.Errorf("a session may write all of the home directory: %v", err)
	}
	for name, prepare := range map[string]func(dir string) error{
		"open to others": func(dir string) error { return os.Chmod(dir, 0o755) },
		"a file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, places.HistoryName("/work/My Project")), nil, 0o600)
		},
		"a symlink": func(dir string) error {
			return os.Symlink(t.TempDir(), filepath.Join(dir, places.HistoryName("/work/My Project")))
		},
		"start is a file": func(dir string) error { return os.WriteFile(filepath.Join(dir, "start"), nil, 0o600) },
	} {
		r, home := request(t)
		dir := filepath.Join(home, ".local/state/sandbox-sidecar/history")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := prepare(dir); err != nil {
			t.Fatal(err)
		}
		if s, err := Prepare(r); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	r.Outer = nil
	if _, err := Prepare(r); err == nil {
		t.Error("no home directory")
	}
}

// On a full disk every write ends with an error. One line says so, once.
func TestPrepare_TellsOneFailure(t *testing.T) {
	r, home := request(t)
	rc := filepath.Join(home, "vimrc")
	if err := os.WriteFile(rc, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := vimrcs
	vimrcs = []string{rc}
	defer func() { vimrcs = before }()
	r.Policy.Rules = []policy.Rule{rule(rc, policy.Read)}
	for _, name := range []string{"startup.py", "vimrc"} {
		path := filepath.Join(home, ".local/state/sandbox-sidecar/history/start", name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Prepare(r); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// What a session does not have leaves its policy, and nothing else does.
func TestLimited(t *testing.T) {
	t.Parallel()
	r, home := request(t)
	if err := os.MkdirAll(filepath.Join(home, fishData), 0o700); err != nil {
		t.Fatal(err)
	}
	places, err := Look(r.Outer)
	if err != nil {
		t.Fatal(err)
	}
	found, err := places.Find(r)
	if err != nil {
		t.Fatal(err)
	}
	other := policy.Rule{Path: "/usr", Access: policy.Read}
	agent := policy.Replaced{Path: "/run/agent", Source: "/run/filter"}
	p := &policy.Policy{
		Rules: append(found.Rules, other), Replaced: append(found.Replaced, agent),
	}
	if !Granted(p) || len(found.Replaced) == 0 {
		t.Fatalf("%+v", found)
	}
	if same := Limited(p, found); len(same.Rules) != len(p.Rules) || len(same.Replaced) != len(p.Replaced) {
		t.Errorf("all of it: %+v", same)
	}
	without := Without(p)
	if Granted(without) || len(without.Rules) != 1 || without.Rules[0] != other || len(without.Replaced) != 1 ||
		without.Replaced[0] != agent {
		t.Errorf("nothing of it: %+v", without)
	}
	if _, err := os.Lstat(filepath.Join(home, ".local/state")); err == nil {
		t.Error("Find has made a directory")
	}
}

// zsh shows what was refused once, and nothing if it cannot empty the file.
func TestZshrc_RepeatsNoRefusal(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip("there is no zsh")
	}
	for option, want := range map[string]string{"": "refused: one\n", "setopt restricted": ""} {
		board, home := filepath.Join(t.TempDir(), "refused"), t.TempDir()
		if err := os.WriteFile(board, []byte("refused: one\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		line := "source ./zshrc; " + option + "\n__sandbox_refused; __sandbox_refused"
		command := exec.Command(program, "-fc", line)
		command.Env = []string{"HOME=" + home, "SANDBOX_REFUSED=" + board, "PATH=" + os.Getenv("PATH")}
		if out, err := command.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%q: %v: %q", option, err, out)
		}
	}
}
