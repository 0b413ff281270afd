//go:build linux

package shells

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// VS Code's script for a shell reads the start-up files only if these variables
// are set. What else VS Code sets stays outside.
func TestVSCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	script := filepath.Join(w.Project, "shellIntegration-bash.sh")
	harness.Write(t, script, `echo "injected=$VSCODE_INJECTION login=$VSCODE_SHELL_LOGIN nonce=$VSCODE_NONCE"`+"\n")
	terminal := w.command(w.link("bash"), "--init-file", script)
	terminal.Env = append(terminal.Env, "TERM=xterm", "VSCODE_INJECTION=1", "VSCODE_SHELL_LOGIN=1",
		"VSCODE_NONCE=secret")
	p := harness.StartTerminal(t, terminal)
	p.Await("injected=1 login=1 nonce=\r\n")
	p.Type(w.trespass() + "; exit\n")
	p.Status()
	w.mustBeConfined("VS Code")
}

// Claude Code splits its prefix at the last " -", quotes what is before, and
// appends the command line as one argument. The result is for a shell of its own.
func TestClaudeCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	prefix := w.link("bash") + " -c"
	before, after, _ := cutLast(prefix, " -")
	snapshot := filepath.Join(w.Project, "snapshot.sh")
	harness.Write(t, snapshot, "taken=yes\n")
	cwd := filepath.Join(w.Project, "cwd")
	line := "source " + snapshot + " && eval " + quote(w.trespass()+`; echo "it's $taken"`) +
		` \< /dev/null && pwd -P >| ` + cwd
	out, err := w.command("bash", "-c", "-l", quote(before)+" -"+after+" "+quote(line)).Output()
	if err != nil || string(out) != "it's yes\n" {
		t.Errorf("%v: %q", err, out)
	}
	if got := harness.Read(t, cwd); got != w.Project+"\n" {
		t.Errorf("the working directory: %q", got)
	}
	w.mustBeConfined("Claude Code")
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Helix pipes a selection through "shell" with one more argument, and replaces
// it by standard output.
func TestHelix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	command := w.command(w.link("bash"), "-c", "tr a-z A-Z; "+w.trespass())
	command.Stdin = strings.NewReader("selected\ntext")
	out, err := command.Output()
	if string(out) != "SELECTED\nTEXT" {
		t.Errorf("%v: %q", err, out)
	}
	w.mustBeConfined("Helix")
}

// Emacs runs command lines in all its ways by shell-file-name, and its terminals
// by explicit-shell-file-name.
func TestEmacs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	for name, call := range map[string]string{
		"shell-command":           `(shell-command LINE)`,
		"shell-command-to-string": `(shell-command-to-string LINE)`,
		"shell-command-on-region": `(progn (insert "x") (shell-command-on-region (point-min) (point-max) LINE))`,
		"async-shell-command":     `(async-shell-command LINE)`,
		"compile":                 `(compile LINE)`,
		"shell":                   `(progn (shell) (comint-send-string nil (concat LINE "\n")))`,
		"ansi-term":               `(progn (ansi-term explicit-shell-file-name) (term-send-raw-string (concat LINE "\n")))`,
	} {
		settings := filepath.Join(w.Home, name+".el")
		harness.Write(t, settings, `(setq shell-file-name "`+w.link("bash")+`" explicit-shell-file-name shell-file-name
      compilation-save-buffers-predicate 'ignore)
(defvar LINE "`+w.trespass()+`; echo end > end")
`+call+`
(with-timeout (60 (kill-emacs 3)) (while (not (file-exists-p "end")) (accept-process-output nil 0.05)))
(kill-emacs 7)
`)
		emacs := w.command("emacs", "-nw", "-Q", "-l", settings)
		emacs.Env = append(emacs.Env, "TERM=xterm", "TMPDIR="+w.Home) // its compiler leaves files
		p := harness.StartTerminal(t, emacs)
		if status := p.Status(); status != 7 {
			t.Errorf("%s: Emacs ended with status %d", name, status)
		}
		os.Remove(filepath.Join(w.Project, "end"))
		w.mustBeConfined(name)
	}
}

// What is said of a command line goes to the file that an editor names, and
// nothing of it to standard error.
func TestReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	reports := w.HomePath(".local/state/sandbox-sidecar/reports")
	report := filepath.Join(reports, "report")
	if err := os.MkdirAll(reports, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(line string) string {
		command := w.command(w.link("bash"), "-c", line)
		command.Env = append(command.Env, "SANDBOX_SHELL_REPORT="+report)
		out, _ := command.CombinedOutput()
		return string(out)
	}
	mustReport := func(what string, apart bool) {
		t.Helper()
		out := run(w.trespass())
		w.mustBeConfined(what)
		said := harness.Read(t, report)
		if got := strings.Contains(said, "refused by the sandbox"); got != apart {
			t.Errorf("%s: the file has %q", what, said)
		}
		if got := !strings.Contains(out, "refused by the sandbox"); got != apart {
			t.Errorf("%s: standard error has %q", what, out)
		}
		os.RemoveAll(report)
	}
	mustReport("no file", false)
	harness.Write(t, report, "")
	mustReport("a file", true)
	elsewhere := w.HomePath("elsewhere")
	harness.Write(t, elsewhere, "")
	if err := os.Link(elsewhere, report); err != nil {
		t.Fatal(err)
	}
	mustReport("a file with another name", false)
	if err := errors.Join(os.Rename(reports, reports+"-real"), os.Symlink(reports+"-real", reports),
		os.WriteFile(report, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	mustReport("in a symlink to a directory", false)
	if err := errors.Join(os.Remove(reports), os.Rename(reports+"-real", reports)); err != nil {
		t.Fatal(err)
	}
	usual := report
	report = elsewhere // such as ~/.bashrc
	mustReport("a file in another directory", false)
	report = usual
	if err := errors.Join(os.WriteFile(report, nil, 0o600), os.Chmod(report, 0o622)); err != nil {
		t.Fatal(err)
	}
	mustReport("a file that others may write", false)
	if err := os.Symlink(filepath.Join(w.Project, "plain"), report); err != nil {
		t.Fatal(err)
	}
	harness.Write(t, filepath.Join(w.Project, "plain"), "")
	mustReport("a symlink", false)
	if err := unix.Mkfifo(report, 0o600); err != nil {
		t.Fatal(err)
	}
	// Its content would be read only after the end.
	if out := run("echo it runs"); !strings.Contains(out, "SANDBOX_SHELL_REPORT") || !strings.Contains(out, "it runs") {
		t.Errorf("a pipe: %q", out)
	}
	os.Remove(report)

	// A session neither learns of the file nor writes it, and errors that
	// prevent a command stay where its caller looks.
	harness.Write(t, report, "")
	if out := run(`echo "[$SANDBOX_SHELL_REPORT]"; echo forged >> '` + report + `'`); !strings.Contains(out, "[]") ||
		strings.Contains(harness.Read(t, report), "forged") {
		t.Errorf("within a session: %q", out)
	}
	harness.Write(t, w.UserSettings(), `{"terminal": {"sandbox": {"enabled": true`)
	if out := run("echo it runs"); !strings.Contains(out, "settings.json") || strings.Contains(out, "it runs") {
		t.Errorf("settings that are wrong: %q", out)
	}
}

// Where SHELL is a link, commands of exec get the real shell.
func TestShellVariableOfExec(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	command := w.command(harness.Binary(t), "exec", "--", "sh", "-c", `exec "$SHELL" -c 'echo $0'`)
	command.Env = append(command.Env, "SHELL="+w.link("bash"))
	out, err := command.Output()
	if err != nil || string(out) != "/bin/bash\n" {
		var failed *exec.ExitError
		errors.As(err, &failed)
		t.Errorf("%v: %q", err, out)
	}
}
