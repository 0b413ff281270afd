package compile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
)

// A list of a directory finds each sensitive place that a lookup finds: also if it
// is too long to be whole, and if its names are in another case.
func TestListed_FindsWhatLookupsFind(t *testing.T) {
	t.Parallel()
	real := resolvetest.InMemory(map[string]string{
		"/home/u/.netrc": "", "/home/u/.zshrc": "-> dotfiles/zshrc", "/home/u/dotfiles/zshrc": "",
		"/home/u/.config/gh/hosts.yml": "", "/home/u/.config/nvim": "-> ../dotfiles/nvim", "/home/u/dotfiles/nvim/": "",
		"/home/u/.ssh/id": "",
	})
	find := func(list func(dir string) ([]string, error)) (*sensitive.Paths, []string) {
		machine := real
		machine.ReadDir = list
		view := resolve.NewView(machine)
		paths := sensitive.Find(view, []string{"/home/u"}, false, func(string) string { return "" })
		acting, _ := paths.ActingBelow(view, "/home/u/dotfiles")
		return paths, acting
	}
	want, wantActing := find(func(string) ([]string, error) { return nil, errors.New("no list: each is looked up") })
	if len(wantActing) < 2 || want.Holds("/home/u/.netrc") == "" {
		t.Fatalf("control: %q", wantActing)
	}
	crowd := make([]string, resolve.MaxNames)
	for i := range crowd {
		crowd[i] = fmt.Sprint(i)
	}
	for name, list := range map[string]func(dir string) ([]string, error){
		"as it is": real.ReadDir,
		"crowded":  func(string) ([]string, error) { return crowd, nil },
		"another case": func(dir string) ([]string, error) {
			names, err := real.ReadDir(dir)
			for i := range names {
				names[i] = strings.ToUpper(names[i])
			}
			return names, err
		},
	} {
		got, acting := find(list)
		if !reflect.DeepEqual(got.All, want.All) || !reflect.DeepEqual(acting, wantActing) {
			t.Errorf("%s: %q, want %q", name, acting, wantActing)
		}
	}
}
