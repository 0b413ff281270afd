package agents

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// home has an installation of each shape.
func home(t *testing.T) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const node, mode = "#!/usr/bin/env node\n", 0o755
	for path, text := range map[string]string{
		"npm/lib/node_modules/@a/agent/cli.js": node, "npm/lib/node_modules/@a/agent/node_modules/dep/x": "",
		"nvm/v22/lib/node_modules/agent/cli.js": node, "nvm/v22/bin/node": "ELF", "system/node": "ELF",
		"share/agent/1.2":  "ELF",
		"asdf/shims/agent": "#!/bin/sh\nexec asdf exec agent\n", "asdf/shims/node": "#!/bin/sh\n",
		"asdf/installs/nodejs/22/lib/node_modules/agent/cli.js": node, "asdf/installs/nodejs/22/bin/node": "ELF",
		"mise-program": "ELF", "mise/installs/npm-agent/2.0.1/bin/agent": "ELF",
		"two/shims/agent": "#!/bin/sh\n", "two/installs/n/1/bin/agent": "ELF", "two/installs/n/2/bin/agent": "ELF",
		"none/shims/agent": "#!/bin/sh\n",
		"pnpm/agent":       "#!/bin/sh\nexec node \"$basedir/global/5/node_modules/agent/cli.js\"\n",
		"pnpm/global/5/node_modules/agent/cli.js": node,
		"uv/python/bin/python3.12":                "ELF", "uv/python/lib/python3.12/os.py": "",
		"pipx/agent/pyvenv.cfg": "", "pipx/agent/bin/agent": "#!DIR/pipx/agent/bin/python\n",
		"user/bin/agent": "#!DIR/uv/python/bin/python3.12\n", "user/lib/python3.12/site-packages/agent/x": "",
		"plain/agent": "#!/bin/sh\necho\n", "volta-shim": "ELF",
	} {
		at := filepath.Join(dir, path)
		err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755),
			os.WriteFile(at, []byte(strings.ReplaceAll(text, "DIR", dir)), mode))
		if err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"npm/bin/agent": "../lib/node_modules/@a/agent/cli.js", "nvm/v22/bin/agent": "../lib/node_modules/agent/cli.js",
		"native/agent": "../share/agent/1.2", "asdf/installs/nodejs/22/bin/agent": "../lib/node_modules/agent/cli.js",
		"mise/shims/agent": "../../mise-program", "mise/installs/npm-agent/latest": "2.0.1",
		"pipx/agent/bin/python": "../../../uv/python/bin/python3.12", "local/agent": "../pipx/agent/bin/agent",
		"volta/agent": "../volta-shim",
	} {
		at := filepath.Join(dir, link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(target, at)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLocate_FindsEachShapeOfInstallation(t *testing.T) {
	t.Parallel()
	dir := home(t)
	for name, test := range map[string]struct {
		path  []string // PATH below dir
		want  string
		parts []string
		first string
	}{
		"npm": {
			[]string{"npm/bin", "system"},
			"npm/bin/agent",
			[]string{"npm/bin/agent", "npm/lib/node_modules", "system/node"},
			"",
		},
		"nvm": {
			[]string{"nvm/v22/bin"},
			"nvm/v22/bin/agent",
			[]string{"nvm/v22/bin/agent", "nvm/v22/lib/node_modules", "nvm/v22/bin/node"},
			"",
		},
		"nvm, another node first": {
			[]string{"system", "nvm/v22/bin"},
			"nvm/v22/bin/agent",
			[]string{"nvm/v22/bin/agent", "nvm/v22/lib/node_modules", "nvm/v22/bin/node"},
			"nvm/v22/bin",
		},
		"native": {[]string{"native"}, "native/agent", []string{"native/agent"}, ""},
		"asdf": {
			[]string{"asdf/shims"},
			"asdf/installs/nodejs/22/bin/agent",
			[]string{
				"asdf/installs/nodejs/22/bin/agent", "asdf/installs/nodejs/22/lib/node_modules",
				"asdf/installs/nodejs/22/bin/node",
			},
			"asdf/installs/nodejs/22/bin",
		},
		"npm, node by a shim": {
			[]string{"npm/bin", "asdf/shims"},
			"npm/bin/agent",
			[]string{"npm/bin/agent", "npm/lib/node_modules", "asdf/installs/nodejs/22/bin/node"},
			"asdf/installs/nodejs/22/bin",
		},
		"mise": {
			[]string{"mise/shims"},
			"mise/installs/npm-agent/2.0.1/bin/agent",
			[]string{"mise/installs/npm-agent/2.0.1/bin/agent"},
			"",
		},
		"pnpm": {
			[]string{"pnpm"}, "pnpm/agent", []string{"pnpm/agent", "pnpm/global/5/node_modules", "/bin/sh"}, "",
		},
		"pipx": {
			[]string{"local"},
			"local/agent",
			[]string{"local/agent", "pipx/agent/bin/python", "pipx/agent", "uv/python"},
			"",
		},
		"pip --user": {
			[]string{"user/bin"},
			"user/bin/agent",
			[]string{"user/bin/agent", "user/lib/python3.12/site-packages", "uv/python/bin/python3.12", "uv/python"},
			"",
		},
		"a script": {[]string{"plain"}, "plain/agent", []string{"plain/agent", "/bin/sh"}, ""},
	} {
		found, err := Locate(lookIn(dir, test.path), "agent")
		var parts []string
		for _, part := range found.Parts {
			parts = append(append(parts, part.Path), part.Beside...)
		}
		for i := range parts {
			parts[i] = strings.TrimPrefix(parts[i], dir+"/")
		}
		path, first := strings.TrimPrefix(found.Path, dir+"/"), strings.TrimPrefix(found.First, dir+"/")
		if err != nil || path != test.want || first != test.first || !slices.Equal(parts, test.parts) {
			t.Errorf("%s: %v\n  %s first %q\n  %q\n  %q", name, err, path, first, parts, test.parts)
		}
	}
}

// lookIn looks names up in directories below dir.
func lookIn(dir string, path []string) Look {
	return func(name string) (string, error) {
		for _, place := range path {
			if at := filepath.Join(dir, place, name); executable(at) {
				return at, nil
			}
		}
		return "", fs.ErrNotExist
	}
}

func TestLocate_GuessesNothing(t *testing.T) {
	t.Parallel()
	dir := home(t)
	for place, want := range map[string]int{"two/shims": 2, "none/shims": 0, "volta": 0} {
		_, err := Locate(lookIn(dir, []string{place}), "agent")
		var shim *ShimError
		if !errors.As(err, &shim) || len(shim.Found) != want {
			t.Errorf("%s: %v", place, err)
		}
	}
	if _, err := Locate(lookIn(dir, nil), "agent"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Locate(lookIn(dir, []string{"npm/bin"}), "agent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without an interpreter: %v", err)
	}
}

func TestServices_AreThoseThatAddressesName(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"http://127.0.0.1:8080":         "localhost:8080 http://host.sandbox.internal:8080",
		"http://localhost:8080/v1?a=b":  "localhost:8080 http://host.sandbox.internal:8080/v1?a=b",
		"http://[::1]:11434/":           "localhost:11434 http://host.sandbox.internal:11434/",
		"https://LocalHost":             "localhost:443 https://host.sandbox.internal:443",
		"http://localhost:2375":         "localhost:2375 http://host.sandbox.internal:2375 Docker",
		"https://gateway.example/v1":    "gateway.example:443 ",
		"https://127.0.0.1.example:444": "127.0.0.1.example:444 ",
		"file:///etc/passwd":            "", "localhost:80": "", "": "", "http://": "", "http://localhost:0": "",
		"http://localhost:99999": "", "%": "",
	} {
		got := ""
		for _, s := range Services([]string{"URL"}, func(string) string { return value }) {
			got = strings.TrimSuffix(s.Host+" "+s.Inside+" "+s.Obeys, " ")
			if !s.Local() {
				got += " "
			}
		}
		if strings.TrimSpace(got) != strings.TrimSpace(want) {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// The kernel parts a first line by spaces and tabs, and reads 256 bytes of it.
func TestShebang_IsTheKernels(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"#!/bin/sh\n": "/bin/sh", "#! \t/bin/sh -e\n": "/bin/sh -e", "#!/bin/sh": "", "#!\v/bin/sh\n": "",
		"#!bin/sh\n": "", "#!/bin/sh\x00\n": "", "#!/" + strings.Repeat("a", 300) + "\n": "", "": "", "#!\n": "",
		"#!/bin/sh\v\n": "/bin/sh\v",
	} {
		if got := strings.Join(shebang([]byte(line)), " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
