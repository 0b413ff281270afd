package sshconfig

import (
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
)

// host has the files of a map.
func host(files map[string]string) Host {
	return Host{
		Home: "/home/u", Env: map[string]string{"AGENT": "/run/agent", "LOOP": "${LOOP}", "REL": "x"},
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
