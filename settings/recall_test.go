package settings

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func makeRepository(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.Command("/usr/bin/git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// checkRecall checks that a snapshot means what it means afresh, and that the
// next one takes its evaluation. Others may change this machine meanwhile, so a
// few attempts count. What is outdated stays so in all of them.
func (d *fixture) checkRecall() compile.Result {
	d.t.Helper()
	var got, want compile.Result
	equal, kept := false, false
	for range 10 {
		snapshot := d.store.InWindow(d.project)
		afresh := compile.New(snapshot.Input, nil, nil)
		got, want = snapshot.Compile(document.KindTool), afresh.Compile(document.KindTool)
		equal = reflect.DeepEqual(got, want)
		if kept = evaluationOf(snapshot) == evaluationOf(d.store.InWindow(d.project)); equal && kept {
			return want
		}
	}
	if !equal {
		d.t.Errorf("another result than afresh:\n%+v\nwant\n%+v", got, want)
	}
	if !kept {
		d.t.Error("control: nothing has changed, and the evaluation is made again")
	}
	return want
}

// After each change of what an evaluation reads, the store's next snapshot means
// what it means to a store that has kept nothing.
func TestRecall_EqualsAFreshEvaluation(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/git"); err != nil {
		harness.Skip(t, "git", err.Error())
	}
	remove := func(path string) func(*fixture) { return func(d *fixture) { d.must(os.RemoveAll(d.home + path)) } }
	write := func(path, text string) func(*fixture) { return func(d *fixture) { d.write(d.home+path, text) } }
	link := func(target, path string) func(*fixture) {
		return func(d *fixture) {
			d.must(os.RemoveAll(d.home + path))
			d.must(os.Symlink(d.home+target, d.home+path))
		}
	}
	const granting = `{"terminal": {"sandbox": {"enabled": true, "system_paths": {"read_write": []},
		"additional_read_only_paths": ["~/data", "~/link", "~/late"], "protected_paths": ["secret/*.pem"]}}}`
	const asking = `{"terminal": {"sandbox": {"additional_read_only_paths": ["~/other"]}}}`
	const tightening = `{"terminal": {"sandbox": {"allow_network": false}}}`
	for name, change := range map[string]func(*fixture){
		"a granted path is made":      write("/late", ""),
		"a protected name appears":    write("/project/secret/new.pem", ""),
		"a secret appears":            write("/.bashrc", "export API_TOKEN=abcdefghijklmnop\n"),
		"a granted path is removed":   remove("/data"),
		"the project's .git goes":     remove("/project/.git"),
		"a directory becomes a link":  link("/other", "/data"),
		"a link leads elsewhere":      link("/other", "/link"),
		"a link becomes a directory":  func(d *fixture) { remove("/link")(d); write("/link/x", "")(d) },
		"git's configuration changes": write("/project/.git/config", "[core]\n\thooksPath = tracked\n"),
		"the user's git changes":      write("/.gitconfig", "[core]\n\thooksPath = tracked\n"),
		"a repository in it is made":  func(d *fixture) { makeRepository(t, d.project+"/vendored") },
		"the user's settings change": func(d *fixture) {
			d.save(d.own, strings.Replace(granting, "~/data", "~/other", 1))
		},
		"other settings appear":          func(d *fixture) { d.save(d.user, tightening) },
		"the user's settings are wrong":  func(d *fixture) { d.save(d.own, granting[1:]) },
		"the user's settings go":         func(d *fixture) { d.must(os.Remove(d.own)) },
		"the project's settings appear":  write("/project/.zed/settings.json", asking),
		"the project's settings tighten": write("/project/.zed/settings.json", tightening),
		"an entry is granted": func(d *fixture) {
			other := explain.Suggestion{Key: "additional_read_only_paths", Value: d.home + "/other"}
			d.must(d.store.Grant(d.project, other))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			d.write(d.own, granting)
			for _, file := range []string{
				"data/x", "data/hooks/x", "other/hooks/x", "project/secret/old.pem", "project/vendored/x", ".gitconfig",
			} {
				d.write(filepath.Join(d.home, file), "")
			}
			d.must(os.Symlink(filepath.Join(d.home, "data"), filepath.Join(d.home, "link")))
			makeRepository(t, d.project)
			d.open(nil)
			before := d.checkRecall()
			change(d)
			if reflect.DeepEqual(d.checkRecall(), before) {
				t.Error("control: the change changes nothing")
			}
		})
	}
}

// A store that watches nothing keeps evaluations, too: "exec" asks again for each
// refusal that it sums up.
func TestRecall_WithoutAWatch(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, `{"terminal": {"sandbox": {"enabled": true, "additional_read_only_paths": ["~/late"]}}}`)
	d.must(os.MkdirAll(d.project, 0o755))
	d.open(func(options *Options) { options.Once = true })
	before := d.checkRecall()
	d.write(d.home+"/late", "")
	made := d.checkRecall()
	if reflect.DeepEqual(made, before) {
		t.Error("control: a granted path that was made changes nothing")
	}
	d.save(d.own, disabled)
	if reflect.DeepEqual(d.checkRecall(), made) {
		t.Error("control: other settings change nothing")
	}
}

// evaluationOf is the same for two snapshots that share one evaluation.
func evaluationOf(s *compile.Snapshot) *sensitive.Paths {
	return s.Reasons(document.KindTool).Secrets()
}
