package policy_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// randomPath is one of few, so that entries of random policies meet.
func randomPath(r *rand.Rand) string {
	path := ""
	for range 1 + r.IntN(4) {
		path += "/" + []string{"a", "b", "ab"}[r.IntN(3)]
	}
	return path
}

// An index answers as the policy that it is made of.
func TestIndex_AnswersAsThePolicy(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	several := func(add func(path string)) {
		for range r.IntN(4) {
			add(randomPath(r))
		}
	}
	answers := map[string]bool{}
	for range 3000 {
		p := &policy.Policy{}
		several(func(path string) {
			p.Rules = append(p.Rules, policy.Rule{Path: path, Access: policy.Access(r.IntN(16))})
		})
		several(func(path string) { p.Rules = append(p.Rules, policy.Rule{Path: path, Access: policy.ReadWrite}) })
		several(func(path string) { p.UnixSockets = append(p.UnixSockets, policy.UnixSocket{Path: path}) })
		several(func(path string) { p.Hidden = append(p.Hidden, policy.Hidden{Path: path}) })
		several(func(path string) { p.Temporary = append(p.Temporary, policy.Temporary{Path: path}) })
		several(func(path string) {
			pattern := r.IntN(2) == 0
			if pattern {
				path += "*"
			}
			one := policy.Protected{Path: path, Pattern: pattern, Creatable: r.IntN(4) == 0}
			p.Protected = append(p.Protected, one)
		})
		several(func(path string) { p.Reopened = append(p.Reopened, path) })
		if r.IntN(4) == 0 {
			p.Replaced = []policy.Replaced{{Path: randomPath(r), Source: "/a"}}
		}
		x := policy.NewIndex(p)
		for range 20 {
			path := randomPath(r)
			wantHidden, wantIs := p.HiddenAt(path)
			hidden, is := x.HiddenAt(path)
			wantOwn, wantIn := p.TemporaryAt(path)
			own, in := x.TemporaryAt(path)
			_, wantWritable := p.Writable(path)
			if x.Writable(path) != wantWritable || hidden != wantHidden || is != wantIs ||
				own != wantOwn || in != wantIn ||
				x.At(path) != p.At(path) || x.Outside(path) != p.Outside(path) {
				t.Fatalf("%s in %+v: %v, %v, %s, %s; want %v, %v, %s, %s",
					path, p, hidden, own, x.At(path), x.Outside(path), wantHidden, wantOwn, p.At(path), p.Outside(path))
			}
			answers[fmt.Sprint(is, in, x.At(path) != 0, x.Outside(path) != 0)] = true
		}
	}
	if len(answers) < 5 {
		t.Errorf("the random policies have too few answers: %v", answers)
	}
}
