package settings

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

const (
	userFile    = "/home/u/.config/zed/settings.json"
	projectFile = "/home/u/project/.zed/settings.json"
)

// snapshotOf is a snapshot over a tree, with the sandbox blocks of the user's
// file and of the project's; "" leaves a file out.
func snapshotOf(t testing.TB, f resolve.FS, user, project string) *Snapshot {
	t.Helper()
	s := &Snapshot{input: input{
		host: resolve.Host{Platform: "linux", Home: "/home/u", Env: map[string]string{
			"HOME":  "/home/u",
			"CACHE": "/home/u/.cache",
		}},
		files: f, projectDir: "/home/u/project",
	}}
	if user != "" {
		s.user = []source.State{stateOf(t, userFile, user)}
	}
	if project != "" {
		state := stateOf(t, projectFile, project)
		s.project = &state
	}
	return s
}

func stateOf(t testing.TB, file, block string) source.State {
	t.Helper()
	if !json.Valid([]byte(block)) {
		t.Fatalf("not JSON: %s", block)
	}
	decoded, problem := document.Decode([]byte(`{"terminal": {"sandbox": `+block+`}}`), "linux", document.Editor)
	if problem != nil {
		t.Fatalf("decode %s: %s", block, problem)
	}
	return source.State{File: file, Exists: true, Read: true, Good: decoded, Digest: sha256.Sum256([]byte(block))}
}

// accessOf is what the compiled policy grants for a path, as names.
func accessOf(c Compiled, path string) string {
	granted := cover{}
	for _, rule := range c.Policy.Rules {
		granted.add(rule.Path, rule.Access)
	}
	return granted.at(path).String()
}

// said joins the diagnostics of a file, one a line.
func said(c Compiled, file string) string {
	var out strings.Builder
	for _, d := range c.Diagnostics {
		if d.File == file {
			out.WriteString(d.Diagnostic.String() + "\n")
		}
	}
	return out.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// again is a snapshot of the same settings that nobody has asked yet.
func again(s *Snapshot) *Snapshot {
	return &Snapshot{input: input{
		host: s.host, files: s.files, user: s.user, project: s.project, projectDir: s.projectDir, trust: s.trust,
		ownPaths: s.ownPaths,
	}}
}
