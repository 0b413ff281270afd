package managed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// elsewhereUser is a user whose settings are where XDG_CONFIG_HOME says.
type elsewhereUser struct {
	*organisation
	w *harness.World
	// config is the directory of configuration, env names it, and file has the
	// settings.
	config, file string
	env          []string
	// secret is a file that no session can read.
	secret string
}

func newElsewhereUser(t *testing.T) *elsewhereUser {
	t.Helper()
	w := harness.NewWorldOutsideDefaults(t)
	u := &elsewhereUser{organisation: newOrganisation(t), w: w, secret: secret(t, w)}
	u.account(w)
	u.config = filepath.Join(w.Home, "configuration")
	u.env = []string{"XDG_CONFIG_HOME=" + u.config}
	u.file = filepath.Join(u.config, "sandbox-sidecar", "settings.json")
	harness.Write(t, u.file, harness.Defaults(nil))
	return u
}

// starts runs a script as each command does that starts a session, in a
// directory, with variables. It reports whether the secret was read.
func (u *elsewhereUser) starts(dir string, env []string, flags ...string) map[string]bool {
	u.t.Helper()
	link := filepath.Join(u.w.Outside, "bin", "bash")
	if _, err := os.Lstat(link); err != nil {
		harness.MakeDir(u.t, filepath.Dir(link))
		harness.Must(u.t, os.Symlink(harness.Binary(u.t), link))
	}
	inside := *u.w
	inside.Project = dir
	read := map[string]bool{}
	out, _ := u.in(dir, u.w, env, append(append([]string{"exec"}, flags...), "--", "cat", u.secret)...)
	read["exec"] = strings.Contains(out, "the secret")
	u.t.Logf("exec: %v: %s", env, out)
	if len(flags) == 0 {
		// Else this process would own a sandbox until it ends.
		alone := append([]string{"SANDBOX_GROUP_OWNER=own"}, env...)
		out, _ = u.runBinary(link, &inside, alone, "-c", "cat "+u.secret)
		read["link"] = strings.Contains(out, "the secret")
		u.t.Logf("link: %v: %s", env, out)
	}
	return read
}

// confines has one session run, which must be confined.
func (u *elsewhereUser) confines(dir, script string) {
	u.t.Helper()
	out, ok := u.in(dir, u.w, u.env, "exec", "--", "bash", "-ec", script+"\n! cat "+u.secret)
	if !ok || strings.Contains(out, "the secret") {
		u.t.Fatalf("control: the session: %s", out)
	}
}

func (u *elsewhereUser) state(name string) string {
	return filepath.Join(u.w.Home, ".local", "state", "sandbox-sidecar", name)
}

// ways are variables that a session can have set for what starts next.
func ways(dir string) map[string][]string {
	return map[string][]string{
		"HOME":            {"HOME=" + dir},
		"XDG_CONFIG_HOME": {"XDG_CONFIG_HOME=" + dir},
		"both":            {"HOME=" + dir, "XDG_CONFIG_HOME=" + filepath.Join(dir, ".config")},
		"none":            nil,
	}
}

// TestGone_NoVariableMakesItAFirstUse names an empty directory in the place of
// the user's only settings.
func TestGone_NoVariableMakesItAFirstUse(t *testing.T) {
	t.Parallel()
	empty := func(u *elsewhereUser) string {
		dir := filepath.Join(u.w.Outside, "empty")
		harness.MakeDir(t, dir)
		return dir
	}
	t.Run("a first use", func(t *testing.T) {
		t.Parallel()
		u := newElsewhereUser(t)
		for way, env := range ways(empty(u)) {
			for door, read := range u.starts(u.w.Project, env) {
				if !read {
					t.Errorf("%s, %s: it does not start", way, door)
				}
			}
		}
	})
	t.Run("after a session", func(t *testing.T) {
		t.Parallel()
		u := newElsewhereUser(t)
		u.confines(u.w.Project, "true")
		for way, env := range ways(empty(u)) {
			for door, read := range u.starts(u.w.Project, env) {
				if read {
					harness.Breach(t, "%s, %s: nothing is confined", way, door)
				}
			}
			// Each command says what is wrong, and what to do.
			for _, args := range [][]string{
				{"exec", "--", "true"},
				{"exec", "--sandbox", "--", "true"},
				{"exec", "--kind", "tool", "--", "true"},
				{"agent", "--program", "/bin/true", "claude"},
				{"learn", "--", "true"},
				{"policy"},
				{"explain", "read", u.secret},
				{"doctor"},
			} {
				out, ok := u.in(u.w.Project, u.w, env, args...)
				if (args[0] == "exec" || args[0] == "learn" || args[0] == "agent") && ok {
					t.Errorf("%s: %v: it starts: %s", way, args, out)
				}
				text := strings.Join(strings.Fields(out), "")
				if !strings.Contains(text, "sandbox-sidecarinit") ||
					!strings.Contains(text, u.state("settings-counted")) {
					t.Errorf("%s: %v: nothing says what to do: %s", way, args, out)
				}
			}
			named := filepath.Join(u.w.Home, "named.json")
			harness.Write(t, named, harness.Off())
			if read := u.starts(u.w.Project, env, "--settings", named); !read["exec"] {
				t.Errorf("control: %s: --settings is the caller's choice", way)
			}
		}
		u.confines(u.w.Project, "true") // control: where they are, they count
	})
}

// TestGone_ThereIsAWayBack has a user remove the settings on purpose.
func TestGone_ThereIsAWayBack(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(u *elsewhereUser) (confined bool){
		"remove the note": func(u *elsewhereUser) bool {
			harness.Must(t, os.RemoveAll(u.state("settings-counted")))
			return false
		},
		"settings that ask for nothing": func(u *elsewhereUser) bool {
			harness.Write(t, u.w.UserSettings(), "{}")
			return false
		},
		"the sandbox is off": func(u *elsewhereUser) bool {
			harness.Write(t, u.file, harness.Off())
			return false
		},
		"init": func(u *elsewhereUser) bool {
			out, ok := u.in(u.w.Project, u.w, u.env, "init", "--yes")
			if !ok || !strings.Contains(out, "settings that counted are gone") {
				t.Errorf("init: %s", out)
			}
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newElsewhereUser(t)
			u.confines(u.w.Project, "true")
			harness.Must(t, os.Remove(u.file))
			for door, read := range u.starts(u.w.Project, u.env) {
				if read {
					harness.Breach(t, "%s: the settings are gone, and nothing is confined", door)
				}
			}
			confined := back(u)
			for door, read := range u.starts(u.w.Project, u.env) {
				if read == confined {
					t.Errorf("%s: confined: %t, want %t", door, !read, confined)
				}
			}
		})
	}
}

// TestGone_InitUnderAVariableWritesWhereItCounts has init started while a
// variable names an empty directory of a session's.
func TestGone_InitUnderAVariableWritesWhereItCounts(t *testing.T) {
	t.Parallel()
	u := newElsewhereUser(t)
	u.confines(u.w.Project, "mkdir c")
	env := []string{"XDG_CONFIG_HOME=" + u.w.ProjectPath("c")}
	if out, ok := u.in(u.w.Project, u.w, env, "init", "--yes"); !ok || !strings.Contains(out, "sandboxed from now on") {
		t.Errorf("init: %s", out)
	}
	if _, err := os.Lstat(u.w.UserSettings()); err != nil {
		t.Errorf("init has not written the user's settings: %v", err)
	}
}

// TestGone_WhatASessionWroteLoosensNothing has a session of one project write
// settings, and one of another started with a variable that names them.
func TestGone_WhatASessionWroteLoosensNothing(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(u *elsewhereUser) (dir, config string){
		"a project": func(u *elsewhereUser) (string, string) {
			dir := filepath.Join(u.w.Outside, "other")
			harness.MakeDir(t, dir)
			return dir, filepath.Join(dir, "c")
		},
		"a grant": func(u *elsewhereUser) (string, string) {
			data := filepath.Join(u.w.Outside, "data")
			harness.MakeDir(t, data)
			harness.Write(t, u.file, harness.Defaults(harness.Sandbox{"additional_read_write_paths": []string{data}}))
			return u.w.Project, filepath.Join(data, "c")
		},
		"the home directory": func(u *elsewhereUser) (string, string) {
			return u.w.Home, filepath.Join(u.w.Home, "c")
		},
	} {
		for content, text := range map[string]string{
			"off":   harness.Off(),
			"opens": harness.Defaults(harness.Sandbox{"additional_read_only_paths": []string{"/"}}),
		} {
			for _, noted := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s noted %t", name, content, noted), func(t *testing.T) {
					t.Parallel()
					u := newElsewhereUser(t)
					dir, config := place(u)
					u.confines(dir, fmt.Sprintf(
						"mkdir -p %[1]s/sandbox-sidecar; echo '%[2]s' >%[1]s/sandbox-sidecar/settings.json",
						config, text))
					if !noted {
						harness.Must(t, os.RemoveAll(u.state("settings-counted")))
					}
					victim := filepath.Join(u.w.Outside, "victim")
					harness.MakeDir(t, victim)
					for door, read := range u.starts(victim, []string{"XDG_CONFIG_HOME=" + config}) {
						if read && (noted || content == "opens") {
							harness.Breach(t, "%s", door)
						}
					}
					u.confines(victim, "true") // the user's settings count
					u.confines(dir, "true")
				})
			}
		}
	}
}

// TestGone_NoOtherNameOfAPlaceCounts has a session leave settings where the notes
// have no name for them, and what starts next be given that name.
func TestGone_NoOtherNameOfAPlaceCounts(t *testing.T) {
	t.Parallel()
	const write = `mkdir -p %[1]s/sandbox-sidecar; echo '%[2]s' >%[1]s/sandbox-sidecar/settings.json`
	for name, make := range map[string]func(u *elsewhereUser) (config string){
		"a project that was renamed": func(u *elsewhereUser) string {
			dir := filepath.Join(u.w.Outside, "other")
			harness.MakeDir(t, dir)
			u.confines(dir, fmt.Sprintf(write, dir+"/c", harness.Off()))
			harness.Must(t, os.Rename(dir, dir+"-renamed"))
			return dir + "-renamed/c"
		},
		"a directory of a session that runs": func(u *elsewhereUser) string {
			pid := u.runs(fmt.Sprintf(write, "/tmp/c", harness.Off()))
			return fmt.Sprintf("/proc/%d/root/tmp/c", pid)
		},
		"the working directory of a session that runs": func(u *elsewhereUser) string {
			pid := u.runs(fmt.Sprintf(write, "c", harness.Off()))
			return fmt.Sprintf("/proc/%d/cwd/c", pid)
		},
		"a copy": func(u *elsewhereUser) string { // of what a session wrote, by a program outside
			harness.Write(t, filepath.Join(u.w.Home, "backup", "sandbox-sidecar", "settings.json"), harness.Off())
			u.confines(u.w.Project, "true")
			return filepath.Join(u.w.Home, "backup")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newElsewhereUser(t)
			config := make(u)
			if _, err := os.Stat(filepath.Join(config, "sandbox-sidecar", "settings.json")); err != nil {
				t.Fatalf("control: the settings are there: %v", err)
			}
			for door, read := range u.starts(u.w.Project, []string{"XDG_CONFIG_HOME=" + config}) {
				if read {
					harness.Breach(t, "%s", door)
				}
			}
			out, _ := u.in(u.w.Project, u.w, []string{"XDG_CONFIG_HOME=" + config}, "exec", "--", "true")
			if !strings.Contains(strings.Join(strings.Fields(out), " "), "unset it") {
				t.Errorf("nothing says what to do: %s", out)
			}
			u.confines(u.w.Project, "true") // control: where they are, they count
		})
	}
}

// runs has a session run a script and stay until the test ends. It returns the
// process ID of a process in it.
func (u *elsewhereUser) runs(script string) (pid int) {
	u.t.Helper()
	command := exec.Command(harness.Binary(u.t), "exec", "--", "sh", "-ec", script+"\necho $$; exec sleep 86400")
	command.Dir, command.Env = u.w.Project, append(harness.Environ(u.w), u.env...)
	u.wrap(command)
	out, err := command.StdoutPipe()
	harness.Must(u.t, err)
	harness.Must(u.t, command.Start())
	u.t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	if _, err := fmt.Fscan(out, &pid); err != nil {
		u.t.Fatalf("control: the session: %v", err)
	}
	return pid
}

// TestGone_WhatIsNotWhereItsPathLeadsOnlyTightens names settings in the private /tmp
// of a session that runs, after the notes were removed.
func TestGone_WhatIsNotWhereItsPathLeadsOnlyTightens(t *testing.T) {
	t.Parallel()
	u := newElsewhereUser(t)
	opens := harness.Defaults(harness.Sandbox{"additional_read_only_paths": []string{"/"}})
	const write = "mkdir -p /tmp/c/sandbox-sidecar; echo '%s' >/tmp/c/sandbox-sidecar/settings.json"
	pid := u.runs(fmt.Sprintf(write, opens))
	u.forget(u.w)
	if _, sees := u.runBinary("/bin/ls", u.w, nil, "-d", fmt.Sprintf("/proc/%d", pid)); !sees && os.Geteuid() != 0 {
		return // a mount of /proc with hidepid: that names nothing, as in a first use
	}
	env := []string{fmt.Sprintf("XDG_CONFIG_HOME=/proc/%d/root/tmp/c", pid)}
	for door, read := range u.starts(u.w.Project, env) {
		if read {
			harness.Breach(t, "%s", door)
		}
	}
	out, _ := u.in(u.w.Project, u.w, env, "policy")
	const want = "can only tighten: where its path leads is not known"
	if os.Geteuid() != 0 && strings.Contains(out, "cannot read: ") {
		return // ptrace(2): an ordinary user's sidecar cannot look into that session
	}
	if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
		t.Errorf("control: %s", out)
	}
}

// TestGone_ASessionThatMayWriteTheSettingsEndsTheirNote has a session of the
// caller's own settings write where others have counted.
func TestGone_ASessionThatMayWriteTheSettingsEndsTheirNote(t *testing.T) {
	t.Parallel()
	u := newElsewhereUser(t)
	u.confines(u.w.Project, "true")
	named := filepath.Join(u.w.Home, "named.json")
	harness.Write(t, named, harness.Defaults(nil))
	script := fmt.Sprintf("echo '%s' >%s", harness.Off(), u.file)
	if out, ok := u.in(u.config, u.w, u.env, "exec", "--settings", named, "--", "sh", "-c", script); ok {
		harness.Breach(t, "XDG_CONFIG_HOME names settings that can be written: %s", out)
	}
	u.confines(u.w.Project, "true")
	if out, ok := u.in(u.config, u.w, nil, "exec", "--settings", named, "--", "sh", "-c", script); !ok {
		t.Fatalf("control: without the variable it is any directory: %s", out)
	}
	for door, read := range u.starts(u.w.Project, u.env) {
		if read {
			harness.Breach(t, "%s: settings of a session count", door)
		}
	}
}

// TestGone_SettingsKeepCounting is days of a user: the home directory has
// sessions, and what holds the settings is granted.
func TestGone_SettingsKeepCounting(t *testing.T) {
	t.Parallel()
	u := newElsewhereUser(t)
	harness.Write(t, u.file, harness.Defaults(harness.Sandbox{
		"additional_read_only_paths": []string{u.secret}, "additional_read_write_paths": []string{u.w.Home},
	}))
	for range 2 {
		for _, dir := range []string{u.w.Home, u.w.Project, u.w.Outside} {
			for door, read := range u.starts(dir, u.env) {
				if !read && dir != u.w.Home { // where the file is in the project
					t.Errorf("%s, %s: the user's grant does not count", dir, door)
				}
			}
			if out, ok := u.in(dir, u.w, u.env, "exec", "--", "true"); !ok {
				t.Errorf("%s: %s", dir, out)
			}
		}
	}
}

// TestGone_NoNoteKeepsASessionFromStarting has a state directory that cannot be
// written.
func TestGone_NoNoteKeepsASessionFromStarting(t *testing.T) {
	t.Parallel()
	u := newElsewhereUser(t)
	harness.Write(t, filepath.Join(u.w.Home, ".local"), "a file")
	u.confines(u.w.Project, "true")
	harness.Must(t, os.Remove(filepath.Join(u.w.Home, ".local")))
	state := filepath.Join(u.w.Home, ".local", "state", "sandbox-sidecar")
	harness.MakeDir(t, state)
	harness.Must(t, os.Chmod(state, 0o500))
	u.confines(u.w.Project, "true")
	harness.Must(t, os.Chmod(state, 0o700))
}

// TestGone_AnotherHomeLeavesNoNote has a session under another HOME, as tests and
// sudo -E have.
func TestGone_AnotherHomeLeavesNoNote(t *testing.T) {
	t.Parallel()
	u := newElsewhereUser(t)
	home := filepath.Join(u.w.Outside, "home")
	harness.Write(t, filepath.Join(home, ".config", "sandbox-sidecar", "settings.json"), harness.Defaults(nil))
	for door, read := range u.starts(u.w.Project, []string{"HOME=" + home}) {
		if read {
			t.Errorf("control: %s is not confined", door)
		}
	}
	for door, read := range u.starts(u.w.Project, nil) {
		if !read {
			t.Errorf("%s: a first use does not start", door)
		}
	}
}
