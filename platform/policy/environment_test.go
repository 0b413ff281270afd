package policy

import (
	"slices"
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
