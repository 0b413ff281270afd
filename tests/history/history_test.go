//go:build linux

package history

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// programs remember what is typed in one session, and offer it in the next.
var programs = []struct {
	name    string
	command []string
	// ready is on the screen before anything is typed.
	ready string
	// says is typed; it has the answer.
	says, answer, leaves string
	// recalls is typed in the next session; then found is on the screen.
	recalls, found, abandons string
	needs                    string // a protection, if it takes one
}{
	{
		name: "bash", command: []string{"/bin/bash"}, ready: `> $`,
		says: "echo first-$((40+2))\n", answer: "first-42", leaves: "exit\n",
		recalls: "history | cat\n", found: `echo first-\$\(\(40\+2`, abandons: "exit\n",
	},
	{
		// Its start-up file names another file, as most do.
		name: "zsh", command: []string{"/usr/bin/zsh"}, ready: `> `,
		says: "echo first-$((40+2))\n", answer: "first-42", leaves: "exit\n",
		recalls: "fc -l 1\n", found: `echo first-\$\(\(40\+2`, abandons: "exit\n",
	},
	{
		name: "fish", command: []string{"/usr/bin/fish"}, ready: `> `, needs: "temporary_files",
		says: "echo first-(math 40+2)\n", answer: "first-42", leaves: "exit\n",
		recalls: "history | cat\n", found: `echo first-\(math`, abandons: "exit\n",
	},
	{
		name: "node", command: []string{"/usr/bin/node"}, ready: `> `,
		says: "'first-' + (40+2)\n", answer: "first-42", leaves: ".exit\n",
		recalls: "\x1b[A\x1b[A", found: `'first-' \+ \(40`, abandons: "\x15.exit\n",
	},
	{
		name: "python3", command: []string{"/usr/bin/python3"}, ready: `>>> `,
		says: "'first-' + str(40+2)\n", answer: "first-42", leaves: "exit()\n",
		recalls: "\x1b[A\x1b[A", found: `'first-' \+ str\(40`, abandons: "\x15exit()\n",
	},
	{
		name: "sqlite3", command: []string{"/usr/bin/sqlite3"}, ready: `sqlite> `,
		says: "SELECT 'first-' || (40+2);\n", answer: "first-42", leaves: ".quit\n",
		recalls: "\x1b[A\x1b[A", found: `'first-' \|\| \(40`, abandons: "\x15.quit\n",
	},
	{
		name: "less", command: []string{"/usr/bin/less", "/etc/passwd"}, ready: `root`,
		says: "/first-42\r", answer: "Pattern not found", leaves: "\rq",
		recalls: "/\x1bk", found: "first-42", abandons: "\x15\x7fq",
	},
	{
		name: "vim", command: []string{"/usr/bin/vim", "-N"}, ready: `VIM`, needs: "temporary_files",
		says: ":echo 'first-' . (40+2)\r", answer: "first-42", leaves: "\r:q\r",
		recalls: ":history :\r", found: `echo 'first-'`, abandons: "\r:q!\r",
	},
}

// newWorld has the start-up files of a user, and own histories that no session
// may read.
func newWorld(t *testing.T) *harness.World {
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.HomePath(".bashrc"), "PS1='> '\n")
	harness.Write(t, w.HomePath(".bash_logout"), "echo the user is logged out\n")
	harness.Write(t, w.HomePath(".zshrc"), "HISTFILE=~/.zsh_history\nHISTSIZE=100\nSAVEHIST=100\nPS1='> '\n")
	harness.Write(t, w.HomePath(".config/fish/config.fish"),
		"function fish_prompt; echo '> '; end\nset -g fish_greeting\n")
	if _, err := os.Stat("/usr/bin/fish"); err == nil {
		// It makes files at its first start.
		first := exec.Command("/usr/bin/fish")
		first.Env = append(harness.Environ(w), "TERM=xterm", "PATH="+harness.SearchPath)
		terminal := harness.StartTerminal(t, first)
		terminal.Await("> ")
		terminal.Type("exit\r")
		terminal.Status()
	}
	harness.Write(t, w.HomePath(".bash_history"), "echo own\n")
	harness.Write(t, w.HomePath(".zsh_history"), "echo own\n")
	harness.Write(t, w.HomePath(".viminfo"), "own\n")
	harness.Write(t, w.HomePath(".python_history"), "own\n")
	harness.Write(t, w.HomePath(".sqlite_history"), "own\n")
	harness.Write(t, w.HomePath(".local/share/fish/fish_history"), "- cmd: echo own\n  when: 1\n")
	return w
}

// own is the content of the home directory, without the sidecar's state.
func own(t *testing.T, w *harness.World) string {
	t.Helper()
	var all strings.Builder
	harness.Must(t, filepath.WalkDir(w.Home, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "sandbox-sidecar":
			return filepath.SkipDir
		case entry.Type().IsRegular():
			all.WriteString(path + ":\n" + harness.Read(t, path))
		}
		return nil
	}))
	return all.String()
}

func spawn(e *harness.Editor, dir string, command []string) *harness.Session {
	return e.Spawn(protocol.SpawnParams{
		Cwd: dir, ProjectDir: dir, Shell: &protocol.Shell{Program: command[0], Args: command[1:]},
	})
}

// What is typed in one session is there in the next, for each program. Nothing
// is reported or asked, and the user's own files stay.
func TestHistory_SurvivesTheSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, onDenied := range []string{"report", "ask"} {
		for _, p := range programs {
			t.Run(p.name+"/"+onDenied, func(t *testing.T) {
				t.Parallel()
				if p.needs != "" {
					harness.Require(t, p.needs)
				}
				harness.RequirePrograms(t, p.name)
				w := newWorld(t)
				before := own(t, w)
				e := harness.Start(t, w,
					harness.Options{Settings: harness.Defaults(harness.Sandbox{"on_denied": onDenied})})
				denials := harness.RecordDenials(e)
				first := spawn(e, w.Project, p.command)
				first.Await(p.ready)
				first.Type(p.says)
				first.Await(p.answer)
				first.Type(p.leaves)
				first.Exit()
				ended := time.Now().Unix()
				// fish shows only what is older than the session, by the second.
				harness.Eventually(t, "another second", func() bool { return time.Now().Unix() > ended })
				second := spawn(e, w.Project, p.command)
				second.Await(p.ready)
				second.Type(p.recalls)
				second.Await(p.found)
				second.Type(p.abandons)
				second.Exit()
				if reported := denials.All(); len(reported) > 0 {
					t.Errorf("reported: %+v", reported)
				}
				if after := own(t, w); after != before {
					t.Errorf("the user's own files changed:\n%s\nwere:\n%s", after, before)
				}
			})
		}
	}
}

// remembered is what bash offers in a directory.
func remembered(t *testing.T, e *harness.Editor, dir string) string {
	t.Helper()
	s := spawn(e, dir, []string{"/bin/bash"})
	s.Await(`> $`)
	s.Type("history | cat; echo d''one\n")
	s.Await("done")
	s.Type("exit\n")
	s.Exit()
	return s.Output()
}

// Shells that run at the same time both count. Another project remembers
// nothing of it, and tools have no part in it.
func TestHistory_IsTheProjects(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := newWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil)})
	one, two := spawn(e, w.Project, []string{"/bin/bash"}), spawn(e, w.Project, []string{"/bin/bash"})
	for i, s := range []*harness.Session{one, two} {
		s.Await(`> $`)
		s.Type([]string{"echo from-$((40+1))\n", "echo from-$((40+2))\n"}[i])
		s.Await([]string{"from-41", "from-42"}[i])
	}
	for _, s := range []*harness.Session{one, two} {
		s.Type("exit\n")
		s.Exit()
	}
	if text := remembered(t, e, w.Project); !strings.Contains(text, "echo from-$((40+1") ||
		!strings.Contains(text, "echo from-$((40+2") {
		t.Errorf("of two shells at once there is: %s", text)
	}
	if text := remembered(t, e, w.Outside); strings.Contains(text, "echo from-") {
		t.Errorf("another project remembers: %s", text)
	}
	// The one way to the files that a tool has no grant for.
	dir := filepath.Join(w.Home, ".local/state/sandbox-sidecar/history")
	names, err := filepath.Glob(dir + "/*/bash_history")
	harness.Must(t, err)
	if len(names) == 0 {
		t.Fatalf("no history in %s", dir)
	}
	output, status := e.Tool(`echo "[$HISTFILE]"; cat ` + names[0] + `; echo planted >>` + names[0])
	if status == 0 || !strings.Contains(output, "[]") || strings.Contains(output, "from-") ||
		strings.Contains(harness.Read(t, names[0]), "planted") {
		t.Errorf("a tool reached the history: status %d: %s", status, output)
	}
}

// A history is filled from the user's own if a session may read that.
func TestHistory_BeginsWithTheUsersOwn(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := newWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(harness.Sandbox{
		"additional_read_only_paths": []string{"~/.bash_history"},
	})})
	if text := remembered(t, e, w.Project); !strings.Contains(text, "echo own") {
		t.Errorf("the user's own is not there: %s", text)
	}
	other := newWorld(t)
	//
	if text := remembered(t, harness.Start(t, other, harness.Options{Settings: harness.Defaults(nil)}),
		other.Project); strings.Contains(text, "echo own") {
		t.Errorf("a session got what it may not read: %s", text)
	}
}

// What a session leaves in the place of a file does not end the history, and
// leads nowhere else.
func TestHistory_WhatASessionPutsInTheWay(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := newWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil)})
	harness.Write(t, w.OutsidePath("victim"), "echo victim\n")
	for _, trap := range []string{
		`rm -f $HISTFILE; mkdir -p $HISTFILE/x`, `rm -rf $HISTFILE; mkfifo $HISTFILE`,
		`rm -rf $HISTFILE; ln -s ` + w.OutsidePath("victim") + ` $HISTFILE`,
		`d=${HISTFILE%/*}/fish; rm -rf $d; ln -s ` + w.Outside + ` $d`,
	} {
		s := spawn(e, w.Project, []string{"/bin/bash"})
		s.Await(`> $`)
		s.Type("file=$HISTFILE; " + trap + "; unset HISTFILE; exit\n")
		s.Exit()
		s = spawn(e, w.Project, []string{"/bin/bash"})
		s.Await(`> $`)
		s.Type("echo again-$((40+2))\n")
		s.Await("again-42")
		s.Type("exit\n")
		s.Exit()
		if text := remembered(t, e, w.Project); !strings.Contains(text, "echo again-") ||
			strings.Contains(text, "victim") {
			t.Errorf("after %s: %s", trap, text)
		}
		if text := harness.Read(t, w.OutsidePath("victim")); text != "echo victim\n" {
			t.Errorf("after %s: the file outside holds %q", trap, text)
		}
		if _, err := os.Stat(w.OutsidePath("fish_history")); err == nil {
			t.Errorf("after %s: fish's history lies outside", trap)
		}
	}
}

// A user who wants no history has none.
func TestHistory_Off(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := newWorld(t)
	e := harness.Start(t, w, harness.Options{
		Settings: harness.Defaults(nil), Env: []string{"LESSHISTFILE=-", "HISTFILE=", "NODE_REPL_HISTORY=/elsewhere"},
	})
	s := spawn(e, w.Project, []string{"/bin/bash"})
	s.Await(`> $`)
	s.Type(`echo "[$LESSHISTFILE] [$HISTFILE] ${NODE_REPL_HISTORY##*/} ${PSQL_HISTORY##*/} ${PYTHON_HISTORY##*/}"` +
		"\n")
	s.Await(`\[-\] \[\] node_repl_history psql_history python_history`)
}

// On a full disk shells start and work, what was there stays, and nothing is
// reported. Where not even the directory can be made, there is no history.
func TestHistory_OnAFullDisk(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, "unshare", "mount")
	w := newWorld(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	harness.MakeDir(t, w.HomePath(".local"))
	shell := harness.Quote(harness.Binary(t)) + ` exec -- /bin/bash`
	command := exec.Command("unshare", "--map-root-user", "--mount", "/bin/bash", "-c", `
mount -t tmpfs -o size=1m tmpfs ~/.local || { echo no tmpfs; exit 99; }
fill() { cat /dev/zero >~/.local/fill; } 2>/dev/null
fill; `+shell+`; echo without-$?; rm ~/.local/fill
`+shell+`; echo saved-$?
fill; `+shell+`; echo full-$?; rm ~/.local/fill
`+shell+`; echo freed-$?`)
	command.Dir = w.Project
	command.Env = append(harness.Environ(w), "TERM=xterm", "XDG_RUNTIME_DIR="+harness.ShortDir(t))
	terminal := harness.StartTerminal(t, command)
	for i, step := range []struct{ types, shows string }{
		{"echo a-$((40+1)); exit\n", "without-0"},
		{"echo b-$((40+2)); exit\n", "saved-0"},
		{"echo c-$((40+3)); history | grep -c 'echo [b]-'; exit\n", "full-0"},
		{"history | grep 'echo [b]-'; exit\n", "freed-0"},
	} {
		terminal.Await(`(?s)(no tmpfs|unshare: |` + strings.Repeat(`.*\n?> `, i+1) + `)`)
		if text := terminal.Screen.String(); strings.Contains(text, "no tmpfs") || strings.Contains(text, "unshare: ") {
			harness.Skip(t, "user_namespaces", text)
		}
		terminal.Type(step.types)
		terminal.Await(step.shows)
	}
	terminal.Status()
	screen := terminal.Screen.String()
	_, full, _ := strings.Cut(screen, "saved-0")
	full, freed, _ := strings.Cut(full, "full-0")
	for name, is := range map[string]bool{
		"the first ran": strings.Contains(screen, "a-41"), "the second ran": strings.Contains(screen, "b-42"),
		"the full disk":       strings.Contains(full, "c-43") && strings.Contains(full, "\n1\r"),
		"it was kept":         strings.Contains(freed, "echo b-$((40+2))"),
		"nothing is reported": !strings.Contains(screen, "refused"),
	} {
		if !is {
			t.Errorf("not so: %s:\n%s", name, screen)
		}
	}
}
