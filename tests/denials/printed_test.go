//go:build linux

package denials

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// printing is a program that opens a file which its command line does not name
// as it opens it, and prints why that failed.
type printing struct {
	line   string
	access string // of the target; "" for read
	target string
	needs  string // a program; "" for the first word
}

// What programs print about a refusal becomes a report, with the setting that
// allows it.
func TestWhatProgramsPrintIsReported(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	file, dir := s.OutsidePath("a file"), s.OutsidePath("dir")
	harness.Write(t, file, "content\n")
	harness.MakeDir(t, dir)
	tries := map[string]printing{
		"python":     {line: "python3 -c \"open('" + file + "')\"", target: file},
		"node":       {line: `node -e "require('fs').readFileSync('` + file + `')"`, target: file},
		"bash":       {line: "read line <'" + file + "'", target: file, needs: "bash"},
		"dash":       {line: "sh -c \"read line <'" + file + "'\"", target: file},
		"ls":         {line: "ls '" + dir + "'", target: dir},
		"ls in UTF8": {line: "LC_ALL=C.UTF-8 ls '" + dir + "'", target: dir, needs: "ls"},
		"ls colours": {line: "printf '\\033[31m'; ls '" + dir + "'", target: dir, needs: "ls"},
		"sort":       {line: "sort '" + file + "'", target: file},
		"relative":   {line: "ls ../outside/dir", target: dir, needs: "ls"},
		"find":       {line: "find '" + dir + "'", target: dir},
		"git":        {line: "GIT_CONFIG_GLOBAL='" + file + "' git config --global --list", target: file, needs: "git"},
		"git clone":  {line: "git clone '" + dir + "' clone", target: dir},
		"git fetch":  {line: "git init -q r && git -C r fetch '" + dir + "'", target: dir, needs: "git"},
		"make":       {line: "make -f '" + file + "'", target: file},
		"home": {
			line: "mkdir -p ~/.config; echo 'mkdir ~/.profile2: permission denied'", access: "create", needs: "sh",
		},
		"a key": {
			line:   "python3 -c \"open('" + filepath.Join(s.Home, ".ssh", "id") + "')\"",
			target: filepath.Join(s.Home, ".ssh", "id"),
		},
	}
	home := tries["home"]
	home.target = filepath.Join(s.Home, ".profile2")
	tries["home"] = home
	harness.Write(t, filepath.Join(s.Home, ".ssh", "id"), "key\n")
	e := s.start(harness.Settings(nil), nil)
	for name, try := range tries {
		if try.needs == "" {
			try.needs = strings.Fields(try.line)[0]
		}
		if _, err := exec.LookPath(try.needs); err != nil {
			harness.Skip(t, try.needs, err.Error())
		}
		if try.access == "" {
			try.access = "read"
		}
		session, _ := e.Run(protocol.SpawnParams{Kind: protocol.Tool, Command: try.line})
		denials := e.denials.Of(session.SessionID)
		found, times := find(denials, try.access, try.target)
		if times < 1 {
			t.Errorf("%s: %d reports of %s %s in %+v\n%s", name, times, try.access, try.target, denials,
				session.Output())
			continue
		}
		if found.Source == protocol.DenialFromOutput && found.Process != nil {
			t.Errorf("%s: %+v", name, found)
		}
		if secret := name == "a key" || name == "home"; secret != (found.Suggestion == nil) {
			t.Errorf("%s: suggestion %+v", name, found.Suggestion)
		}
	}
}

// A program that lies causes reports only about what is really refused, and no
// more than other denials.
func TestProgramsThatLieGetOnlyTruths(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	harness.Write(t, s.OutsidePath("secret"), "content\n")
	harness.Write(t, s.ProjectPath("mine"), "content\n")
	e := s.start(harness.Settings(nil), nil)
	lies := []string{
		"open /etc/passwd: permission denied", "cat: /usr/bin/ls: Permission denied", "cat: mine: Permission denied",
		"cat: /nowhere/at/all: Permission denied", "cat: /proc/self/mem: Permission denied",
		"cat: /proc/1/mem: Permission denied", "connect: Network is unreachable",
		"dial tcp 192.0.2.1:443: connect: network is unreachable",
		"ls: cannot open directory '" + s.Project + "': Permission denied",
	}
	for _, lie := range lies {
		session, _, denials := e.tool("echo", lie)
		if len(denials) > 0 {
			t.Errorf("%q: %+v\n%s", lie, denials, session.Output())
		}
	}
	// The same line for ever is one report, and soon repeated ones that count.
	const script = `i=0; while [ $i -lt 2000 ]; do echo "cat: %s: Permission denied"; i=$((i+1)); done`
	_, status, denials := e.tool("sh", "-c", fmt.Sprintf(script, s.OutsidePath("secret")))
	if _, times := find(denials, "read", s.OutsidePath("secret")); status != 0 || times == 0 || times > 5 ||
		len(denials) != times {
		t.Errorf("status %d, %d reports: %+v", status, len(denials), denials)
	}
	for _, d := range denials {
		if d.Source != protocol.DenialFromOutput {
			t.Errorf("source %q", d.Source)
		}
	}
	ignore := s.start(harness.Settings(harness.Sandbox{"on_denied": "ignore"}), nil)
	if _, _, denials := ignore.tool("echo", "cat: "+s.OutsidePath("secret")+": Permission denied"); len(denials) > 0 {
		t.Errorf("ignored: %+v", denials)
	}
}
