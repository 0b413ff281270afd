//go:build linux

package ordinary

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// rows are the files of the directory of that name. Their keys:
//
//	program: a program that must be installed, or the row is skipped
//	grant: a path for additional_read_write_paths, beyond the defaults
//	network: "localhost" if the script uses the loopback interface; with the
//	  network off that needs a network namespace
//	without: a path for additional_read_write_paths, beyond the grant, on a
//	  machine without namespaces
//	kind: "terminal" for one
//	type: a pattern of the output, " -> ", and what is typed then
//
// The section "prepare" runs outside of the sandbox, in a new home directory.
// SHARED is a directory that all runs of the row share. "script" runs inside,
// by bash -e in the project.
func rows(t testing.TB) []harness.CaseFile {
	t.Helper()
	return harness.CaseFiles(t, "rows", []string{"program", "grant", "without", "network", "kind", "type"},
		[]string{"prepare", "script"})
}

func TestOrdinaryThingsWork(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for i, row := range rows(t) {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			needProgram(t, row.Key("program"))
			shared := t.TempDir()
			none := harness.WithoutNamespaces(t)
			if !run(t, row, shared, "without a sandbox", harness.Off(), nil) {
				t.Fatal("control: what does not work without a sandbox says nothing about one")
			}
			sandboxes := []func(){
				func() { run(t, row, shared, "with default settings", harness.Defaults(grants(row)), nil) },
				func() {
					run(t, row, shared, "where there are no namespaces",
						harness.Defaults(grants(row, row.Key("without"))), none)
				},
			}
			if row.Key("network") == "" || harness.Namespaces(t) {
				offline := grants(row)
				offline["allow_network"] = false
				sandboxes = append(sandboxes, func() {
					run(t, row, shared, "with the network off", harness.Defaults(offline), nil)
				})
			}
			for j, try := range sandboxes {
				if harness.Turn(t, i+j, len(sandboxes)) {
					try()
				}
			}
		})
	}
}

// needProgram skips a test if a program is not where sessions search for
// programs.
func needProgram(t *testing.T, program string) {
	t.Helper()
	for dir := range strings.SplitSeq(searchPath, ":") {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return
		}
	}
	harness.Skip(t, program, "not installed in "+searchPath)
}

const searchPath = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/go/bin"

// grants are the keys that a row needs, and further paths.
func grants(row harness.CaseFile, more ...string) harness.Sandbox {
	paths := slices.DeleteFunc(append([]string{row.Key("grant")}, more...), func(path string) bool {
		return path == ""
	})
	if len(paths) == 0 {
		return harness.Sandbox{}
	}
	return harness.Sandbox{"additional_read_write_paths": paths}
}

// run runs a row in a world of its own, whose home is not in a temporary
// directory, because default settings open those.
func run(t *testing.T, row harness.CaseFile, shared, under, settings string, wrap func(*exec.Cmd)) bool {
	t.Helper()
	root := harness.OutsideDefaults(t)
	w := &harness.World{Home: root, Project: filepath.Join(root, "project"), Outside: filepath.Join(root, "outside")}
	prepare(t, w, row, shared)
	e := harness.Start(t, w, harness.Options{Settings: settings, Env: []string{"PATH=" + searchPath}, Wrap: wrap})
	kind := protocol.Tool
	if row.Key("kind") == "terminal" {
		kind = protocol.Terminal
	}
	session := e.Spawn(protocol.SpawnParams{Kind: kind, Command: "/bin/bash", Args: []string{"-e", "script"}})
	if session.Sandbox.Applied == (settings == harness.Off()) {
		t.Errorf("%s: sandbox applied: %v", under, session.Sandbox.Applied)
	}
	if pattern, text, typed := strings.Cut(row.Key("type"), " -> "); typed {
		session.Await(pattern)
		session.Type(text)
	}
	exit := session.Exit()
	if exit.ExitCode != nil && *exit.ExitCode == 0 {
		return true
	}
	t.Errorf("%s: exit %v:\n%s", under, exit, session.Output())
	return false
}

// prepare writes the script into the project, and runs the section "prepare" in
// the home.
func prepare(t *testing.T, w *harness.World, row harness.CaseFile, shared string) {
	t.Helper()
	harness.Write(t, filepath.Join(w.Home, ".gitconfig"), "[user]\n\tname = Tester\n\temail = tester@example.com\n")
	harness.Write(t, filepath.Join(w.Project, "script"), row.Section("script"))
	command := exec.Command("/bin/bash", "-e", "-c", row.Section("prepare"))
	command.Env, command.Dir = append(harness.Environ(w), "PATH="+searchPath, "SHARED="+shared), w.Home
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("prepare: %v\n%s", err, output)
	}
}
