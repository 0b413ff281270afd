package stage

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/golden"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// abis are all existing versions and some future ones.
var abis = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 20}

func rule(path string, access policy.Access, file string) policy.Rule {
	return policy.Rule{Path: path, Access: access, Origin: policy.Origin{File: file, Key: "test"}}
}

// samples are the policies of the golden files.
var samples = map[string]*policy.Policy{
	"nothing": {Restricted: true},
	"terminal": {
		Restricted: true, Project: "/home/u/p", Network: policy.Network{Allowed: true}, OnDenied: policy.Report,
		Rules: []policy.Rule{
			rule("/dev/null", policy.Read|policy.Write|policy.Device, policy.OriginBuiltIn),
			rule("/dev/ptmx", policy.Read|policy.Write|policy.Device, policy.OriginBuiltIn),
			rule("/etc", policy.Read, policy.OriginBuiltIn),
			rule("/home/u/.cache/go", policy.ReadWrite, "/home/u/.config/sandbox-sidecar/settings.json"),
			rule("/home/u/p", policy.ReadWrite, policy.OriginSession),
			rule("/run/user/1000/sandbox-sidecar/s", policy.ReadWrite, policy.OriginSession),
			rule("/usr", policy.Read|policy.Execute, policy.OriginBuiltIn),
		},
		Protected: []policy.Protected{{Path: "/home/u/p/.git/hooks"}},
	},
	"sockets": {
		Restricted: true, Network: policy.Network{Allowed: true}, OnDenied: policy.Ignore,
		Rules:       []policy.Rule{rule("/tmp", policy.ReadWrite, policy.OriginBuiltIn)},
		UnixSockets: []policy.UnixSocket{{Path: "/run/docker.sock"}, {Abstract: "/tmp/.X11-unix/X0"}},
	},
	"single-accesses": {
		Restricted: true, Network: policy.Network{}, OnDenied: policy.Ask,
		Rules: []policy.Rule{
			rule("/d", policy.Device, "f"), rule("/n", 0, "f"), rule("/r", policy.Read, "f"),
			rule("/w", policy.Write, "f"), rule("/x", policy.Execute, "f"),
		},
	},
	"odd-names": {
		Restricted: true, Network: policy.Network{Allowed: true},
		Rules: []policy.Rule{
			rule("/a\nallow \"/\" read_file", policy.Read, "f"), rule("/b\"c\\", policy.Read, "f"), rule("/\xff",
				policy.ReadWrite, policy.OriginSession),
		},
	},
	"everything": {
		Restricted: true, Network: policy.Network{Allowed: true}, OnDenied: policy.Ignore,
		Rules: []policy.Rule{rule("/", policy.ReadWrite|policy.Device, "f")},
	},
	"root-hidden-canaries": {
		Restricted: true, Network: policy.Network{Allowed: true}, OnDenied: policy.Ignore,
		Rules: []policy.Rule{rule("/", policy.Write, "f"), rule("/boot", policy.Read, "f"), rule("/sys",
			policy.Read, "f")},
	},
}

func TestTranslate_Golden(t *testing.T) {
	t.Parallel()
	for name, p := range samples {
		var got strings.Builder
		for _, abi := range abis {
			r := Translate(p, abi)
			fmt.Fprintf(&got, "%srequested network=%t protected_paths=%t denials=%t whole_filesystem=%t\n\n",
				r, r.Requested.Network, r.Requested.ProtectedPaths, r.Requested.Denials, r.Requested.WholeFilesystem)
		}
		golden.Compare(t, *update, filepath.Join("testdata", name+".golden"), got.String())
	}
}

func TestTranslate_NeverGrantsMoreThanThePolicy(t *testing.T) {
	t.Parallel()
	for _, p := range samples {
		for abi := range 21 {
			check(t, p, abi)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		data := make([]byte, random.IntN(64))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		check(t, decode(data), random.IntN(25))
	}
}

// An ABI version above the last preset is treated as the last.
func TestHandled_GrowsWithTheVersion(t *testing.T) {
	t.Parallel()
	fs, scoped := Handled(0)
	if fs != 0 || scoped != 0 {
		t.Errorf("without landlock %s and %s are handled", fs, scoped)
	}
	for abi := 1; abi <= 25; abi++ {
		nextFS, nextScoped := Handled(abi)
		if nextFS&fs != fs || nextScoped&scoped != scoped {
			t.Errorf("ABI %d handles less than %d: %s, %s", abi, abi-1, nextFS, nextScoped)
		}
		if abi > len(presets) && (nextFS != fs || nextScoped != scoped) {
			t.Errorf("ABI %d, which has no preset, handles what ABI %d does not", abi, abi-1)
		}
		fs, scoped = nextFS, nextScoped
	}
}

func FuzzTranslate(f *testing.F) {
	f.Add([]byte{}, 7)
	f.Add([]byte("\x0f/a\x00\x81/b\x00\x42sock\x00"), 9)
	f.Add([]byte("\x0f\n\"\\\xff\x00\x00\x00"), 1)
	f.Fuzz(func(t *testing.T, data []byte, abi int) { check(t, decode(data), abi) })
}

// decode makes a policy from bytes. Each piece up to a zero byte is a rule, or a
// socket if the highest bit of its first byte is set.
func decode(data []byte) *policy.Policy {
	p := &policy.Policy{Restricted: true, Network: policy.Network{Allowed: len(data)%2 == 0}, OnDenied: policy.Report}
	for piece := range strings.SplitSeq(string(data), "\x00") {
		if piece == "" {
			continue
		}
		head, path := piece[0], "/"+piece[1:]
		switch {
		case head&0x80 == 0:
			file := "f"
			if head&0x10 != 0 {
				file = policy.OriginSession
			}
			p.Rules = append(p.Rules, rule(path, policy.Access(head&0x0f), file))
		case head&0x40 == 0:
			p.UnixSockets = append(p.UnixSockets, policy.UnixSocket{Path: path})
		default:
			p.UnixSockets = append(p.UnixSockets, policy.UnixSocket{Abstract: path})
		}
	}
	return p
}

// check tests what must be true of every translation.
func check(t *testing.T, p *policy.Policy, abi int) {
	t.Helper()
	r := Translate(p, abi)
	fs, scoped := Handled(abi)
	if r.FS != fs || r.Scoped != scoped || r.ABI != abi {
		t.Errorf("ABI %d: not every right of the kernel is handled: %s, %s", abi, r.FS, r.Scoped)
	}
	for _, granted := range r.Rules {
		if granted.Access == 0 || granted.Access&^r.FS != 0 {
			t.Errorf("ABI %d: %q grants %s of the handled %s", abi, granted.Path, granted.Access, r.FS)
		}
		if granted.Access&(ll.AccessFSMakeChar|ll.AccessFSMakeBlock) != 0 {
			t.Errorf("%q may make device nodes", granted.Path)
		}
		if !covered(p, granted) {
			t.Errorf("ABI %d: %q grants %s, which no rule of the policy does", abi, granted.Path, granted.Access)
		}
	}
	for _, rule := range p.Rules {
		if rule.Origin.File == policy.OriginSession && translateAccess(rule.Access)&fs != 0 && !required(r, rule.Path) {
			t.Errorf("%q is the session's own, but not required", rule.Path)
		}
	}
	if r.Canary != nil {
		if _, granted := p.Find(policy.Read, r.Canary.Path); granted {
			t.Errorf("the canary %q is granted", r.Canary.Path)
		}
	}
	if r.Requested.WholeFilesystem != (r.Canary == nil) {
		t.Error("WholeFilesystem does not agree with the canary")
	}
	if lines := strings.Count(r.String(), "\nallow "); lines != len(r.Rules) {
		t.Errorf("%d rules are printed as %d:\n%s", len(r.Rules), lines, r)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Ruleset
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("the stage would read %v as %v, %v", r, back, err)
	}
}

// covered reports whether one rule or socket of the policy grants all of a rule of
// the ruleset.
func covered(p *policy.Policy, granted Rule) bool {
	for _, rule := range p.Rules {
		have := translateAccess(rule.Access)
		if rule.Path != string(granted.Path) || granted.Access&^have != 0 {
			continue
		}
		if granted.Access&fsDevice == 0 || rule.Access.Has(policy.Device) {
			return true
		}
	}
	for _, socket := range p.UnixSockets {
		if socket.Path == string(granted.Path) && granted.Access == FSConnect {
			return true
		}
	}
	return false
}

func required(r Ruleset, path string) bool {
	for _, granted := range r.Rules {
		if string(granted.Path) == path && granted.Required {
			return true
		}
	}
	return false
}

func TestTranslate_DropsGuardedAccessWithoutProtection(t *testing.T) {
	t.Parallel()
	p := &policy.Policy{Rules: []policy.Rule{
		{Path: "/outside", Access: policy.Read | policy.Write, Guarded: policy.Write},
		{Path: "/inside", Access: policy.ReadWrite},
	}}
	ruleset := Translate(p, 9)
	if ruleset.Rules[0].Access != FSRead|FSWrite {
		t.Errorf("with protection: %s", ruleset.Rules[0].Access)
	}
	ruleset.DropGuarded(p)
	if ruleset.Rules[0].Access != FSRead || ruleset.Rules[1].Access != FSRead|FSWrite|FSExecute {
		t.Errorf("without protection: %s, %s", ruleset.Rules[0].Access, ruleset.Rules[1].Access)
	}
}

func TestRequested_TakesNamespacesOnlyIfTheyGiveAProtection(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		requested Requested
		want      bool
	}{
		{Requested{}, false},
		{Requested{Denials: true, WholeFilesystem: true}, false},
		{Requested{Terminals: true}, true},
		{Requested{Network: true}, true},
		{Requested{ProtectedPaths: true}, true},
	} {
		if got := test.requested.NeedsNamespaces(); got != test.want {
			t.Errorf("%+v: %t", test.requested, got)
		}
	}
}

// A file of which sessions read a part is hidden where a wider grant opens it:
// without mounts the session would read the whole file.
func TestTranslate_AReplacedFileInAGrantIsHidden(t *testing.T) {
	t.Parallel()
	copies := []policy.Copy{{Path: "/home/u/.npmrc", Text: "fund=false\n"}}
	for dir, want := range map[string]bool{"/home/u": true, "/home/u/p": false} {
		p := &policy.Policy{
			Restricted: true, Copies: copies,
			Rules: []policy.Rule{rule(dir, policy.Read, policy.OriginSession)},
		}
		if got := Translate(p, 7).Requested.Hidden; got != want {
			t.Errorf("%s is granted: hidden is requested: %t", dir, got)
		}
	}
}
