//go:build linux

package protected

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// anywhere are acts against "**/rules.mine", each with the file that they make or
// change. Without the sandbox all of them do.
var anywhere = map[string][2]string{
	"at the top":         {`echo evil >rules.mine`, "rules.mine"},
	"new, deep":          {`mkdir -p a/b/c; echo evil >a/b/c/rules.mine`, "a/b/c/rules.mine"},
	"there before":       {`echo evil >old/deep/rules.mine`, "old/deep/rules.mine"},
	"a directory":        {`mkdir -p a/rules.mine; echo evil >a/rules.mine/x`, "a/rules.mine/x"},
	"rename":             {`mkdir a; echo evil >a/y; mv a/y a/rules.mine`, "a/rules.mine"},
	"rename of a tree":   {`mkdir -p a y; echo evil >y/x; mv y a/rules.mine`, "a/rules.mine/x"},
	"rename over":        {`echo evil >y; mv -f y old/deep/rules.mine`, "old/deep/rules.mine"},
	"hard link":          {`mkdir a; echo evil >y; ln y a/rules.mine`, "a/rules.mine"},
	"symlink":            {`mkdir a; echo evil >a/y; ln -s y a/rules.mine`, "a/rules.mine"},
	"a dangling symlink": {`mkdir a; ln -s a/rules.mine y; echo evil >y`, "a/rules.mine"},
	"a linked directory": {`mkdir -p a/b; ln -s a/b d; echo evil >d/rules.mine`, "a/b/rules.mine"},
	"dot dot":            {`mkdir -p a/b; cd a/b; echo evil >../rules.mine`, "a/rules.mine"},
	"proc cwd":           {`mkdir a; cd a; echo evil >/proc/self/cwd/rules.mine`, "a/rules.mine"},
	"a descriptor":       {`mkdir a; exec 7<a; echo evil >/proc/self/fd/7/rules.mine`, "a/rules.mine"},
	"above moved":        {`mv old else; mkdir -p old/deep; echo evil >old/deep/rules.mine`, "old/deep/rules.mine"},
	"a closed way":       {`mkdir -p a/b; cd a/b; chmod 0 ..; echo evil >rules.mine; chmod 755 ..`, "a/b/rules.mine"},
}

// A name that is protected anywhere cannot be made or changed at any depth, and
// explain says so.
func TestProtectedAnywhere(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	begin := func(s *scene, name string) (line string) {
		harness.Write(t, s.ProjectPath("old/deep/rules.mine"), "good\n")
		return anywhere[name][0]
	}
	evil := func(s *scene, name string) bool {
		text, err := os.ReadFile(s.ProjectPath(anywhere[name][1]))
		return err == nil && string(text) == "evil\n"
	}
	controls, printed := withoutSandbox(t, maps.Keys(anywhere), begin)
	confined := share(t, harness.Defaults(harness.Sandbox{"protected_paths": []string{"**/rules.mine"}}))
	for name, c := range anywhere {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !evil(controls[name], name) {
				t.Fatalf("control: %s", printed)
			}
			s, e := confined.in(t)
			line := begin(s, name)
			explained, err := harness.Try(e.Editor, protocol.PolicyExplain, protocol.PolicyExplainParams{
				Kind: protocol.Tool, ProjectDir: s.Project, Access: "write", Target: s.ProjectPath(c[1]),
			})
			if err != nil || explained.Allowed {
				t.Errorf("explain says otherwise: %+v, %v", explained, err)
			}
			if _, output, _, _ := e.run(line); evil(s, name) {
				harness.Breach(t, "it was written: %s", output)
			}
		})
	}
}

// What package managers fetch is left out, as explain says, and so are other
// names. What comes with a directory from elsewhere is listed.
func TestProtectedAnywhere_LeavesOut(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	s := newScene(t)
	e := s.start(harness.Defaults(harness.Sandbox{
		"protected_paths": []string{"**/*.mine"}, "additional_read_write_paths": []string{s.Outside},
	}), harness.Machine{})
	allowed := []string{"node_modules/x/rules.mine", "a/rules.mine.not", "a/mine"}
	for _, name := range allowed {
		explained, err := harness.Try(e.Editor, protocol.PolicyExplain, protocol.PolicyExplainParams{
			Kind: protocol.Tool, ProjectDir: s.Project, Access: "write", Target: s.ProjectPath(name),
		})
		if err != nil || !explained.Allowed {
			t.Errorf("%s: explain says otherwise: %+v, %v", name, explained, err)
		}
	}
	_, output, status, end := e.run("set -e; for f in " + strings.Join(allowed, " ") +
		`; do mkdir -p $(dirname $f); echo x >$f; done; mkdir -p ` + s.Outside + `/d; echo x >` + s.Outside +
		`/d/rules.mine; mkdir b; mv ` + s.Outside + `/d b/d || cp -r ` + s.Outside + `/d b/e || mv node_modules/x b/x`)
	if status != 0 {
		t.Fatalf("status %d: %s", status, output)
	}
	listed := func(f protocol.Finding) bool {
		return strings.HasPrefix(f.Path, s.ProjectPath("b/")) && filepath.Base(f.Path) == "rules.mine"
	}
	if !slices.ContainsFunc(end.Review, listed) {
		t.Errorf("the review: %q", s.review(end))
	}
}

// A name that is hidden anywhere cannot be read at any depth, under another name
// or through a link. What the session makes itself it can read.
func TestHiddenAnywhere(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	const secret = "token-of-the-test"
	prepare := func(s *scene) {
		for _, name := range []string{".env", "a/b/.env", "a/c/.env.local", "target", "node_modules/x/.env"} {
			harness.Write(t, s.ProjectPath(name), secret+"\n")
		}
		harness.MakeDir(t, s.ProjectPath("linked"))
		if err := os.Symlink("../target", s.ProjectPath("linked/.env")); err != nil {
			t.Fatal(err)
		}
	}
	confined := share(t, harness.Defaults(harness.Sandbox{"hidden_paths": []string{"**/.env", "**/.env.*"}}))
	ways := map[string]string{
		"at the top": `cat .env`, "deep": `cat a/b/.env`, "a pattern": `cat a/c/.env.local`,
		"a link":     `cat linked/.env`,
		"its target": `cat target`, "a hard link": `ln a/b/.env y && cat y`, "a rename": `mv a/b/.env y && cat y`,
		"above moved": `mv a z; cat z/b/.env`, "proc": `cat /proc/self/cwd/a/b/.env`,
		"a new link":  `ln -s a/b/.env y; cat y`,
		"an exchange": `mkdir n; mv -T a/b n/b; cat n/b/.env`,
	}
	controls, printed := withoutSandbox(t, maps.Keys(ways), func(s *scene, name string) string {
		prepare(s)
		return "{ " + ways[name] + "\n} >~/read"
	})
	for name, command := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if harness.Read(t, controls[name].HomePath("read")) != secret+"\n" {
				t.Fatalf("control: %s", printed)
			}
			s, e := confined.in(t)
			prepare(s)
			if _, output, _, _ := e.run(command); strings.Contains(output, secret) {
				harness.Breach(t, "it was read: %s", output)
			}
		})
	}
	s := newScene(t)
	prepare(s)
	settings := harness.Defaults(harness.Sandbox{"hidden_paths": []string{"**/.env"}})
	_, output, status, _ := s.start(settings, harness.Machine{}).run(
		`mkdir n && echo own >n/.env && cat n/.env && cat node_modules/x/.env`)
	if status != 0 || !strings.Contains(output, "own") || !strings.Contains(output, secret) {
		t.Errorf("its own, and what is left out: status %d: %s", status, output)
	}
}
