package sshconfig

import (
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// host has the files of a map.
func host(files map[string]string) Host {
	return Host{
		Home: "/home/u", Env: map[string]string{"AGENT": "/run/agent", "LOOP": "${LOOP}", "REL": "x"},
		Tokens: map[byte]string{'i': "1000", 'u': "me", 'L': "here", 'l': ""},
		ReadFile: func(path string) ([]byte, error) {
			if text, known := files[path]; known {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		},
		Glob: func(pattern string) []string {
			if dir, star := strings.CutSuffix(pattern, "*"); star {
				return []string{dir + "1", dir + "2"}
			}
			return []string{pattern}
		},
	}
}

func TestRead_Names(t *testing.T) {
	t.Parallel()
	got := Read(host(map[string]string{
		"/home/u/.ssh/config": `
# Include /commented
Include work ~/more.d/*
include="/etc/quoted name"
Include ~other/x %h/y
Host *.example.com
	IdentityFile ~/.ssh/id_work # the key at work
	IDENTITYFILE = "%d/keys/my key.pub"
	IdentityFile ~/.ssh/%h
	IdentityFile relative
	IdentityFile ~/.ssh/id_work
Match host x exec "true"
	UserKnownHostsFile ~/.ssh/hosts /dev/null none
	CertificateFile=/c/100%%.pub
	RevokedHostKeys ${REL}
	RevokedHostKeys ${LOOP}/x
`,
		"/home/u/.ssh/work": "Include config\nInclude work\nIdentityFile ${AGENT}/key\n",
		"/home/u/more.d/2":  "IdentityFile",
	}), "/home/u/.ssh/config")
	want := Names{
		Included:   []string{"/home/u/.ssh/work", "/home/u/more.d/1", "/home/u/more.d/2", "/etc/quoted name"},
		Patterns:   []string{"/home/u/more.d/*"},
		Widened:    []string{"/home/u/more.d/*"},
		KnownHosts: []string{"/home/u/.ssh/hosts", "/dev/null"},
		Public: []string{
			"/home/u/.ssh/id_work.pub", "/home/u/.ssh/id_work-cert.pub",
			"/home/u/keys/my key.pub", "/home/u/keys/my key-cert.pub",
			"/c/100%.pub", "/run/agent/key.pub", "/run/agent/key-cert.pub",
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// Words are read as ssh reads them, and patterns stand for all that they may come
// to include.
func TestRead_Includes(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`/a /b`: "/a /b", `"/a b" /c`: "/a b /c", `'/a b'`: "/a b", `/a'b c'd"e"`: "/ab cde", `/a\ b \"c`: "/a b",
		`/a\'b`: "/a'b",
		`/a"b`:  "", `'/a`: "", `/a "# b" # /c`: "/a", `=/a`: "/a", ` = "/a"`: "/a", `/a#b`: "/a#b", `"/a\\"`: `/a\`,
		`/d/*/config`: "/d/*/config", `/d/*/*`: "/d/*/1 /d/*/2 (/d/1/* /d/2/*)", `/d/a?`: "/d/a? (/d/a*)",
		`/d/[0-9]*.conf`: "/d/[0-9]*.conf (/d/**.conf)", `~/[a-z]*`: "/home/u/[a-z]1 /home/u/[a-z]2", `/?`: "/?",
	} {
		names := Read(host(map[string]string{"/top": `"Include" ` + value + "\n"}), "/top")
		got := strings.Join(slices.DeleteFunc(names.Included, func(path string) bool {
			return strings.HasPrefix(path, "/home/u/.ssh/")
		}), " ")
		if len(names.Widened) > 0 {
			got += " (" + strings.Join(names.Widened, " ") + ")"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

// A configuration that includes ever more files comes to an end.
func TestRead_IsBounded(t *testing.T) {
	t.Parallel()
	h, reads := host(nil), 0
	h.ReadFile = func(path string) ([]byte, error) {
		reads++
		return fmt.Appendf(nil, "Include %[1]sa\nInclude %[1]sb\n", path), nil
	}
	if names := Read(h, "/x"); reads != maxFiles || len(names.Included) != maxFiles-1 {
		t.Errorf("%d files were read, %d are included", reads, len(names.Included))
	}
}

// Each IdentityAgent, and what ssh connects to.
func TestRead_Agents(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"/run/a": "/run/a", "~/a.sock": "/home/u/a.sock", `"~/with blank"`: "/home/u/with blank", "none": "",
		"SSH_AUTH_SOCK": "", "$AGENT": "/run/agent", "$REL": "", "$NONE": "", "${AGENT}/x": "/run/agent/x",
		"${NONE}/x": "",
		"%d/a":      "/home/u/a", "/run/user/%i/a": "/run/user/1000/a", "/a/%u-%L%%": "/a/me-here%", "/a/../b": "/b",
		// What depends on the server, or is not known, names nothing.
		"/a/%h": "", "/a/%C": "", "/a/%r": "", "/a/%n/%p": "", "/a/%l": "", "/a/%": "", "/a/%x": "", "a": "",
		"~other/a": "", "%d": "/home/u", "$": "", "": "",
	} {
		files := map[string]string{"/c": "Host x\n  IdentityAgent " + value + "\n", "/d": "Identityagent=" +
			value + "\n"}
		for file := range files {
			if got := strings.Join(Read(host(files), file).Agents, " "); got != want {
				t.Errorf("%s in %s: %q, want %q", value, file, got, want)
			}
		}
	}
}
