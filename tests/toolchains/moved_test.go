//go:build linux

package toolchains

import (
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// sourced runs a program by exec in a shell that has read a file of variables
// in the project, as direnv and tasks of editors do.
func sourced(t *testing.T, w *harness.World, file, content string, program ...string) (output string, ok bool) {
	t.Helper()
	harness.Write(t, w.ProjectPath(file), content)
	command := exec.Command("/bin/sh", append([]string{
		"-c", `set -a; . "./$0"; exec "$@"`, file, harness.Binary(t), "exec", "--",
	}, program...)...)
	command.Dir = w.Project
	command.Env = append(harness.Environ(w), "PATH="+harness.SearchPath)
	out, err := command.CombinedOutput()
	return string(out), err == nil
}

// TestMoved_NoLineOfVariablesOpensAnotherProject has a session write a line that
// names another project into a file of variables. The next session, started in a
// shell that has read it, neither reads nor writes that project.
func TestMoved_NoLineOfVariablesOpensAnotherProject(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	lines := map[string]string{".env": "", ".envrc": "export "}
	for i, set := range toolchain.All {
		places := map[string]toolchain.Place{}
		for _, p := range set.Places {
			if p.Variable != "" && len(p.Proof()) > 0 && p.Platform != "darwin" {
				places[p.Variable] = p
			}
		}
		if len(places) == 0 {
			continue
		}
		t.Run(set.Name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorldOutsideDefaults(t)
			harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{
				"toolchains": []string{set.Name}, "toolchain_caches": "shared",
			}))
			for j, variable := range slices.Sorted(maps.Keys(places)) {
				p := places[variable]
				other := filepath.Join(w.Home, "work", variable)
				path := filepath.Join(other, p.Below, "secret")
				harness.Write(t, path, "another project's\n")
				const attack = `cat "$0"; echo written >>"$0"; echo new >"$0.new"; cat "$0.new"`
				for k, file := range []string{".env", ".envrc"} {
					if !harness.Turn(t, i+j+k, len(lines)) {
						continue
					}
					out, _ := sourced(t, w, file, lines[file]+variable+"="+other+"\n", "sh", "-c", attack, path)
					if strings.Contains(out, "another project's") || strings.Contains(out, "written") ||
						strings.Contains(out, "new\n") {
						harness.Breach(t, "%s in %s opens another project:\n%s", variable, file, out)
					}
					if !strings.Contains(out, "cat: ") {
						t.Errorf("%s: the attack did not run:\n%s", variable, out)
					}
				}
				// The control: with a proof in it, the same line opens it.
				proof := asName(p.Proof()[0])
				if strings.HasSuffix(proof, "/") {
					proof += "x"
				}
				harness.Write(t, filepath.Join(other, proof), "")
				if out, ok := sourced(t, w, ".env", variable+"="+other+"\n", "cat", path); !ok ||
					!strings.Contains(out, "another project's") {
					t.Errorf("%s: control: with %s:\n%s", variable, proof, out)
				}
			}
		})
	}
}

// asName is a name that a proof's patterns match.
func asName(proof string) string {
	return strings.NewReplacer("[0-9]", "1", "[0-9a-f]", "a", "*", "1").Replace(proof)
}

// TestMoved_NoProofOfASessionOpensWhatIsBeside has a session write what proves a
// directory into its project, and a line that names the directory above. The next
// session, started in a shell that has read it, neither reads nor writes what is
// beside the project. Agents are tried, too: their state is never shared.
func TestMoved_NoProofOfASessionOpensWhatIsBeside(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, set := range toolchain.All {
		belows := map[string][]string{}
		proofs := map[string][]string{}
		for _, p := range set.Places {
			if p.Variable != "" && len(p.Proof()) > 0 && p.Platform != "darwin" {
				belows[p.Variable], proofs[p.Variable] = append(belows[p.Variable], p.Below), p.Proof()
			}
		}
		if len(proofs) == 0 {
			continue
		}
		t.Run(set.Name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorldOutsideDefaults(t)
			harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{
				"toolchains": []string{set.Name}, "toolchain_caches": "shared",
			}))
			for variable, proofs := range proofs {
				made := map[string][]string{} // by the first name, which is the project's
				for _, proof := range proofs {
					if first, rest, deep := strings.Cut(asName(proof), "/"); deep && rest != "" {
						made[first] = append(made[first], rest)
					}
				}
				for first, rest := range made {
					code := filepath.Join(w.Home, "code", variable, first)
					w := &harness.World{Home: w.Home, Project: filepath.Join(code, first), Outside: w.Outside}
					harness.MakeDir(t, w.Project)
					victim := filepath.Join(code, "victim", "secret")
					targets := []string{victim}
					for _, below := range belows[variable] {
						if path := filepath.Join(code, below, "secret"); filepath.Dir(path) != w.Project {
							targets = append(targets, path)
						}
					}
					for _, path := range targets {
						harness.Write(t, path, "another project's\n")
					}
					const prepare = `for proof; do
							mkdir -p "$(dirname "$proof")"
							case $proof in */) mkdir -p "$proof";; *) : >"$proof";; esac
						done
						echo "$0" >.env`
					out, ok := sourced(t, w, "none.env", "", append([]string{
						"sh", "-ec", prepare, variable + "=" + code,
					}, rest...)...)
					if !ok {
						t.Fatalf("%s: no session could make %q:\n%s", variable, rest, out)
					}
					const attack = `for path; do
							cat "$path"; echo written >>"$path"; echo new >"$path.new"; cat "$path.new"
						done`
					out, _ = sourced(t, w, ".env", harness.Read(t, w.ProjectPath(".env")), append([]string{
						"sh", "-c", attack, "sh",
					}, targets...)...)
					if strings.Contains(out, "another project's") || strings.Contains(out, "new\n") {
						harness.Breach(t, "%s: with %q in the project %s what is beside is open:\n%s", variable, rest,
							first, out)
					}
					said := strings.Join(strings.Fields(out), " ")
					noted := strings.Contains(said, "not granted, because it holds the project") ||
						strings.Contains(said, "not granted, because a session could have made ")
					if !strings.Contains(out, "cat: ") || !noted {
						t.Errorf("%s: the attack did not run, or no note says why:\n%s", variable, out)
					}
					for _, path := range targets {
						if got := harness.Read(t, path); got != "another project's\n" {
							harness.Breach(t, "%s: %s has %q", variable, path, got)
						}
					}
				}
			}
		})
	}
}

// TestMoved_WhatToolsMakeIsProof has real tools make the directories that
// variables name.
func TestMoved_WhatToolsMakeIsProof(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, "go", "python3")
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{"toolchains": []string{"go", "python"}}))
	own := filepath.Join(w.Home, "own")
	proxy := filepath.Join(w.Outside, "example.org", "m", "@v")
	harness.Write(t, filepath.Join(proxy, "list"), "v1.0.0\n")
	harness.Write(t, filepath.Join(proxy, "v1.0.0.info"), `{"Version": "v1.0.0", "Time": "2020-01-01T00:00:00Z"}`)
	harness.Write(t, filepath.Join(proxy, "v1.0.0.mod"), "module example.org/m\n")
	module(t, filepath.Join(proxy, "v1.0.0.zip"))
	harness.Write(t, w.ProjectPath("go.mod"), "module hello\n\ngo 1.21\n\nrequire example.org/m v1.0.0\n")
	harness.Write(t, w.ProjectPath("lib.go"), "package hello\n\nimport \"example.org/m\"\n\nconst Word = m.Word\n")
	variables := "VIRTUAL_ENV=" + own + "/venv\nGOMODCACHE=" + own + "/modules\nGOCACHE=" + own + "/builds\n" +
		"GOFLAGS=-mod=mod\nGONOSUMDB=*\nGOSUMDB=off\nGOTOOLCHAIN=local\n"
	harness.Write(t, w.ProjectPath("outside.env"), variables+"GOPROXY=file://"+w.Outside+"\n")
	command := exec.Command("/bin/sh", "-ec", `set -a; . ./outside.env
		python3 -m venv --without-pip "$VIRTUAL_ENV"
		go mod download example.org/m
		go build -o lib.a .`)
	command.Dir, command.Env = w.Project, append(harness.Environ(w), "PATH="+harness.SearchPath)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("outside: %v\n%s", err, out)
	}
	const line = `"$VIRTUAL_ENV/bin/python" -c 'import sys; print(sys.prefix)'; export GOPROXY=off; go build -o lib.a . && echo built`
	out, ok := sourced(t, w, ".env", variables, "sh", "-ec", line)
	if !ok || !strings.Contains(out, own+"/venv\n") || !strings.Contains(out, "built") {
		t.Errorf("inside:\n%s", out)
	}
}
