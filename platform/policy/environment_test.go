package policy

import (
	"slices"
	"strings"
	"testing"
)

func TestEnvironment_Allows(t *testing.T) {
	t.Parallel()
	e := Environment{Allowed: []string{"PATH", "LD_LIBRARY_PATH", "LD_*", "NODE_*", "GO*"}}
	for name, want := range map[string]bool{
		"PATH": true, "PATHS": false, "path": false, "GOPATH": true, "GO": true, "NODE_ENV": true, "": false,
		"TERM": true, "ZED_TERM": true, "TERMINFO": false, // the terminal's own variables always pass
		// hooks only by their exact names
		"NODE_OPTIONS": false, "LD_PRELOAD": false, "LD_LIBRARY_PATH": true, "BASH_ENV": false,
	} {
		if got := e.Allows(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

func TestEnvironment_FilterSplitsByName(t *testing.T) {
	t.Parallel()
	kept, dropped := Environment{Allowed: []string{"A", "B_*"}}.Filter([]string{
		"A=1", "A=", "B_C=x=y", "SECRET=s",
		"SECRET=t", "AA=1", "=x", "broken", "TERM=xterm",
	})
	if want := []string{"A=1", "A=", "B_C=x=y", "TERM=xterm"}; !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	if want := []string{"AA", "SECRET"}; !slices.Equal(dropped, want) {
		t.Errorf("dropped %q, want %q", dropped, want)
	}
}

// A variable that nobody has listed passes without what signs in.
func TestFilter_Bare(t *testing.T) {
	t.Parallel()
	e := Environment{Allowed: []string{"HANDS", "PIP_INDEX_URL"}, Bare: []string{"PIP_INDEX_URL"}}
	for value, want := range map[string]string{
		"":                                     "",
		"https://pypi.corp.example/simple":     "=",
		"https://u:p@pypi.corp.example/simple": "https://pypi.corp.example/simple",

		"https://t@a.example/x,direct|https://b.example": "https://a.example/x,direct|https://b.example",
		"https://a.example/x https://u:p@b.example#y":    "https://a.example/x https://b.example#y",

		"corp=https://u:p@a@b.example/":                                                   "corp=https://b.example/",
		"https://a.example/with-a-long-name-of-a-repository/x":                            "=",
		"https://u:p/q@a.example/":                                                        "dropped",
		"https://dl.example/a1B2c3D4e5F6g7H8i9J0/simple":                                  "dropped",
		"https://dl.example/Xk3jd83Hd93jKd0z/corp/simple/":                                "dropped",
		"https://pypi.example/abcdefghijklmnopqrstuvw/me/":                                "dropped",
		"https://pypi.example/simple?user=me&password=hunter2":                            "dropped",
		"https://u:a://b@pypi.example/":                                                   "dropped",
		"https://my-company-111122223333.d.codeartifact.eu-central-1.amazonaws.com/main/": "=",
		"https://artifactory01.corp.example/pypi-virtual-2024-q1-stable/":                 "=",
		"https://pkgs.dev.azure.com/c/01234567-89ab-cdef-0123-456789abcdef/f/":            "=",
		"off": "=",
	} {
		if want == "=" {
			want = value
		}
		passed, dropped := e.Filter([]string{"PIP_INDEX_URL=" + value, "HANDS=https://u:p@a.example/"})
		got := "dropped"
		if len(passed) == 2 {
			got = strings.TrimPrefix(passed[0], "PIP_INDEX_URL=")
		}
		if got != want || (got == "dropped") != slices.Contains(dropped, "PIP_INDEX_URL") {
			t.Errorf("%q: %q, want %q; dropped %q", value, got, want, dropped)
		}
		if !slices.Contains(passed, "HANDS=https://u:p@a.example/") {
			t.Errorf("%q: what is listed by hand has changed: %q", value, passed)
		}
	}
}

func TestIsHook(t *testing.T) {
	t.Parallel()
	if !slices.IsSorted(hookNames) {
		t.Fatal("hookNames is not sorted: the binary search misses entries")
	}
	for name, want := range map[string]bool{
		"LD_PRELOAD": true, "LD_": true, "DYLD_INSERT_LIBRARIES": true, "BASH_ENV": true, "ENV": true,
		"_JAVA_OPTIONS":  true,
		"PROMPT_COMMAND": true, "GIT_CONFIG_COUNT": true, "BASH_FUNC_ls%%": true, "ENVIRONMENT": false, "PATH": false,
		"LDFLAGS": false,
	} {
		if IsHook(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}
