package policy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// reference says what At is, rule by rule.
func reference(p *Policy, path string) (access Access) {
	within := func(dir, path string) bool {
		return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	}
	// back: something between the two has a rule or is an allowed socket.
	back := func(dir, path string) bool {
		between := func(granted string) bool { return granted != dir && within(dir, granted) && within(granted, path) }
		return slices.ContainsFunc(p.Rules, func(r Rule) bool { return between(r.Path) }) ||
			slices.ContainsFunc(p.UnixSockets, func(s UnixSocket) bool { return s.Path != "" && between(s.Path) })
	}
	for _, r := range p.Replaced {
		if within(r.Path, path) {
			path = r.Source + strings.TrimPrefix(path, r.Path)
			break
		}
	}
	private := func(path string) bool {
		for _, t := range p.Temporary {
			if within(t.Path, path) {
				return !back(t.Path, path)
			}
		}
		return false
	}
	for _, h := range p.Hidden {
		if within(h.Path, path) && !back(h.Path, path) && !private(h.Path) {
			return 0
		}
	}
	for _, r := range p.Rules {
		if !within(r.Path, path) {
			continue
		}
		given := r.Access
		if slices.ContainsFunc(p.Temporary, func(t Temporary) bool { return t.Path == r.Path }) && back(r.Path, path) {
			given &^= Write
		}
		access |= given
	}
	for _, one := range p.Protected {
		reopened := func(open string) bool {
			return open != one.Path && within(one.Path, open) && within(open, path)
		}
		if !one.Creatable && one.Covers(path) && !slices.ContainsFunc(p.Reopened, reopened) {
			access &^= Write
		}
	}
	return access
}

// The evaluator agrees with the reference about every path of small policies that
// are drawn at random.
func TestAt_AgreesWithTheReference(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var paths []string
	for _, a := range []string{"", "/a", "/ab", "/b"} {
		for _, b := range []string{"", "/a", "/b", "/b.x"} {
			for _, c := range []string{"", "/c", "/c.x"} {
				if path := a + b + c; a != "" {
					paths = append(paths, path)
				}
			}
		}
	}
	paths = append(paths, "/")
	some := func() string { return paths[random.IntN(len(paths))] }
	var seen [ReadWrite + 1]int
	for range 2000 {
		p := &Policy{}
		for range random.IntN(5) {
			p.Rules = append(p.Rules, Rule{Path: some(), Access: Access(random.IntN(int(ReadWrite) + 1))})
		}
		for range random.IntN(3) {
			p.Temporary = append(p.Temporary, Temporary{Path: some()})
			p.Protected = append(p.Protected, Protected{Path: some(), Creatable: random.IntN(4) == 0})
			p.Hidden = append(p.Hidden, Hidden{Path: some()})
			p.Reopened = append(p.Reopened, some())
		}
		if random.IntN(3) == 0 {
			p.Protected = append(p.Protected, Protected{Path: "/a/*.x", Pattern: true})
			p.UnixSockets = append(p.UnixSockets, UnixSocket{Path: some()}, UnixSocket{Abstract: "a"})
			p.Replaced = append(p.Replaced, Replaced{Path: "/b/a", Source: some()})
		}
		for _, path := range paths {
			want := reference(p, path)
			seen[want]++
			if got := p.At(path); got != want {
				t.Fatalf("%s: %s, want %s, by %+v", path, got, want, p)
			}
			if got := p.InPlace(path); got != want && !p.IsReplaced(path) {
				t.Fatalf("%s in place: %s, want %s, by %+v", path, got, want, p)
			}
			if _, hidden := p.HiddenAt(path); hidden != p.IsHidden(path) || hidden && p.InPlace(path) != 0 {
				t.Fatalf("%s: hidden %t, by %+v", path, hidden, p)
			}
		}
	}
	for access, times := range seen {
		if times < 100 {
			t.Errorf("only %d paths have %s", times, Access(access))
		}
	}
}

// It is called where nothing can be allocated.
func TestInPlace_AllocatesNothing(t *testing.T) {
	p := full()
	if allocated := testing.AllocsPerRun(100, func() { p.InPlace("/p/.git/hooks") }); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}
