//go:build unix

package spawn

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	restricted := policy.Policy{
		Restricted:  true,
		Environment: policy.Environment{Allowed: []string{"PATH", "TERM", "XDG_RUNTIME_DIR"}},
	}
	tests := []struct {
		name          string
		env           []string
		policy        policy.Policy
		runtimeDir    string
		want, dropped []string
	}{
		{
			"the last of several entries counts, at the place of the first",
			[]string{"A=1", "TERM=x", "B=2", "A=3"},
			policy.Policy{},
			"",
			[]string{"A=3", "TERM=x", "B=2", "PWD=/dir"},
			nil,
		},
		{
			"PWD is the session's",
			[]string{"PWD=/elsewhere", "TERM=x"},
			policy.Policy{},
			"",
			[]string{"TERM=x", "PWD=/dir"},
			nil,
		},
		{"without TERM there is a default", nil, policy.Policy{}, "", []string{"PWD=/dir", "TERM=xterm-256color"}, nil},
		{
			"a dumb TERM is an editor's own",
			[]string{"TERM=dumb"},
			policy.Policy{},
			"",
			[]string{"PWD=/dir", "TERM=xterm-256color"},
			nil,
		},
		{
			"a variable that is not allowed is dropped and listed",
			[]string{"SECRET=1", "PATH=/bin", "TERM=x", "API=2"},
			restricted, "",
			[]string{"PATH=/bin", "TERM=x", "PWD=/dir"},
			[]string{"API", "SECRET"},
		},
		{
			"PWD does not count as dropped",
			[]string{"PWD=/elsewhere", "TERM=x"},
			restricted, "",
			[]string{"TERM=x", "PWD=/dir"},
			nil,
		},
		{
			"a private runtime directory replaces the user's",
			[]string{"XDG_RUNTIME_DIR=/run/user/1", "TERM=x"},
			restricted, "/private",
			[]string{"TERM=x", "PWD=/dir", "XDG_RUNTIME_DIR=/private"},
			nil,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := Request{Env: test.env, Policy: test.policy, Dir: "/dir"}
			env, dropped := r.environment(test.runtimeDir)
			if !slices.Equal(env, test.want) || !slices.Equal(dropped, test.dropped) {
				t.Errorf("got %q, dropped %q\nwant %q, dropped %q", env, dropped, test.want, test.dropped)
			}
		})
	}
}

func TestEnvironment_TheCallersTerminalMayBeDumb(t *testing.T) {
	t.Parallel()
	r := Request{Env: []string{"TERM=dumb"}, Dir: "/dir", foreground: true}
	if env, _ := r.environment(""); !slices.Contains(env, "TERM=dumb") {
		t.Errorf("got %q", env)
	}
}

func TestClamp(t *testing.T) {
	t.Parallel()
	for size, want := range map[Size][2]uint16{
		{}:                         {80, 24},
		{Cols: -1, Rows: -1}:       {80, 24},
		{Cols: 1, Rows: 1}:         {1, 1},
		{Cols: 65535, Rows: 65536}: {65535, 65535},
		{Cols: 0, Rows: 50}:        {80, 50},
	} {
		if cols, rows := size.clamp(); [2]uint16{cols, rows} != want {
			t.Errorf("%+v: got %d × %d, want %v", size, cols, rows, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		request Request
		path    string
		cause   error
		says    string // part of the message
	}{
		{"all is well", Request{Dir: dir, Program: "x", Argv: []string{"x"}}, "", nil, ""},
		{"a relative directory", Request{Dir: "dir"}, "dir", nil, "not an absolute path"},
		{"a missing directory", Request{Dir: dir + "/no"}, dir + "/no", fs.ErrNotExist, "no such file or directory"},
		{"a file", Request{Dir: file}, file, nil, "not a directory"},
		{"no program", Request{Dir: dir, Argv: []string{""}}, "", nil, "its name is empty"},
		{"a NUL in an argument", Request{Dir: dir, Program: "x", Argv: []string{"a\x00b"}}, "", nil, "NUL"},
		{"a NUL in a variable", Request{Dir: dir, Program: "x", Env: []string{"A=a\x00b"}}, "", nil, "NUL"},
		{"a NUL in the program", Request{Dir: dir, Program: "a\x00b"}, "", nil, "NUL"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := test.request.Check()
			if test.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var failed *Error
			if !errors.As(err, &failed) || failed.Path != test.path || !strings.Contains(err.Error(), test.says) ||
				(test.cause != nil && !errors.Is(err, test.cause)) {
				t.Errorf("got %#v", err)
			}
		})
	}
}
