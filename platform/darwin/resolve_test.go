package darwin

import (
	"encoding/json"
	"errors"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func resolve(t *testing.T, plan Plan, files Files) Scene {
	t.Helper()
	scene, missing, err := plan.Resolve(files)
	if err != nil || missing != nil {
		t.Fatalf("missing %v, %v", missing, err)
	}
	return scene
}

func TestResolve_SpellsPathsAsTheDiskDoes(t *testing.T) {
	t.Parallel()
	plan := Plan{
		Grants: []Grant{{
			Path: "/users/U/p", Access: policy.ReadWrite,
		}, {Path: "/Users/u/P/Main.go", Access: policy.Read}},
		Protected: []handshake.RawString{"/users/u/P/.GIT/Hooks", "/Users/U/p/.VSCode"},
		Fixed:     []handshake.RawString{"/Users/U/p/.Zed/settings.json"},
		Sockets:   []handshake.RawString{"/private/var/run/Docker.sock"},
	}
	scene := resolve(t, plan, mac())
	want := []ResolvedGrant{
		{Real: Real{"/Users/u/p", true}, Access: policy.ReadWrite},
		{Real: Real{"/Users/u/p/main.go", false}, Access: policy.Read},
	}
	if !slices.Equal(scene.Grants, want) {
		t.Errorf("grants: %v", scene.Grants)
	}
	if want := []Name{
		{"/Users/u/p/.git/hooks", "/Users/u/p/.git/hooks"},
		{"/Users/u/p/.VSCode", "/Users/u/p"},
	}; !slices.Equal(scene.Protected, want) {
		t.Errorf("protected: %v", scene.Protected)
	}
	if want := []Name{{"/Users/u/p/.Zed/settings.json", "/Users/u/p"}}; !slices.Equal(scene.Fixed, want) {
		t.Errorf("fixed: %v", scene.Fixed)
	}
	if want := []string{"/private/var/run/docker.sock"}; !slices.Equal(scene.Sockets, want) {
		t.Errorf("sockets: %v", scene.Sockets)
	}
	if want := []Name{
		{"/Users/u/p", "/Users/u/p"},
		{"/Users/u/p/.Zed", "/Users/u/p"},
		{"/Users/u/p/.git", "/Users/u/p/.git"},
	}; !slices.Equal(scene.Pinned, want) {
		t.Errorf("pinned: %v", scene.Pinned)
	}
}

func TestResolve_ReportsMissingGrants(t *testing.T) {
	t.Parallel()
	disk := mac()
	disk.add("-> /Users/u/.ssh", "/Users/u/p/innocent")
	plan := Plan{
		Grants: []Grant{
			{Path: "/no/such", Access: policy.Read},
			{Path: "/Users/u/p/main.go/below", Access: policy.Read},
			{Path: "/Users/u/p/innocent/id_rsa", Access: policy.Read}, // became a symlink after the policy was compiled
			{Path: "/tmp/x", Access: policy.Read},
			{Path: "/Users/u/../v", Access: policy.Read},
			{Path: "/Users/u/", Access: policy.Read},
			{Path: "relative", Access: policy.Read},
			{Path: "/a\x00b", Access: policy.Read},
		},
		Sockets: []handshake.RawString{"/private/var/run/none.sock"},
	}
	scene, missing, err := plan.Resolve(disk)
	if err != nil || len(scene.Grants) != 0 || len(scene.Sockets) != 0 || len(missing) != len(plan.Grants)+1 {
		t.Fatalf("%v, %v, %v", scene.Grants, missing, err)
	}
	for i, m := range missing[:len(plan.Grants)] {
		if m.Path != string(plan.Grants[i].Path) || m.Reason == "" {
			t.Errorf("%+v", m)
		}
	}
	plan.Grants = []Grant{{Path: "/no/such", Access: policy.Read, Required: true}}
	if _, _, err := plan.Resolve(disk); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a required grant that is missing: %v", err)
	}
}

// failing is a disk on which some paths cannot be read.
type failing struct {
	disk
	at string
}

func (f failing) Real(name string) (Real, error) {
	if policy.Contains(f.at, name) {
		return Real{}, &fs.PathError{Op: "find", Path: name, Err: syscall.EACCES}
	}
	return f.disk.Real(name)
}

func TestResolve_FailsIfAPathCannotBeDenied(t *testing.T) {
	t.Parallel()
	for _, plan := range []Plan{
		{Protected: []handshake.RawString{"/Users/u/p/.git/hooks"}},
		{Protected: []handshake.RawString{"/Users/u/p/.git/none"}},
		{Closed: []handshake.RawString{"/Users/u/p/.git"}},
		{Fixed: []handshake.RawString{"/Users/u/p/.git/config"}},
	} {
		if scene, _, err := plan.Resolve(failing{mac(), "/Users/u/p/.git"}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%+v: %+v, %v", plan, scene, err)
		}
		if _, _, err := plan.Resolve(mac()); err != nil {
			t.Errorf("%+v: %v", plan, err)
		}
	}
	for _, name := range []handshake.RawString{"/Users/u/p/../x", "x", "/a\x00b"} {
		if scene, _, err := (Plan{Protected: []handshake.RawString{name}}).Resolve(mac()); err == nil {
			t.Errorf("%q: %+v", name, scene)
		}
	}
}

func TestResolve_FollowsSymlinksToDeniedPaths(t *testing.T) {
	t.Parallel()
	disk := mac()
	disk.add("-> ../store/git", "/Users/u/p/sub/.git")
	disk.add("dir", "/Users/u/p/store/git/hooks")
	disk.add("-> /Users/u/p/store", "/Users/u/p/Alias")
	disk.add("-> loop", "/Users/u/p/loop")
	plan := Plan{
		Grants:    []Grant{{Path: "/Users/u/p", Access: policy.ReadWrite}},
		Protected: []handshake.RawString{"/Users/u/p/sub/.git/hooks", "/Users/u/p/alias/git/new"},
	}
	scene := resolve(t, plan, disk)
	want := []Name{
		{"/Users/u/p/sub/.git", "/Users/u/p/sub/.git"},
		{"/Users/u/p/store/git/hooks", "/Users/u/p/store/git/hooks"},
		{"/Users/u/p/Alias", "/Users/u/p/Alias"},
		{"/Users/u/p/store/git/new", "/Users/u/p/store/git"},
	}
	if !slices.Equal(scene.Protected, want) {
		t.Errorf("protected: %v", scene.Protected)
	}
	for _, dir := range []string{"/Users/u/p/sub", "/Users/u/p/store", "/Users/u/p/store/git"} {
		if !slices.Contains(scene.Pinned, Name{dir, dir}) {
			t.Errorf("%s is not pinned: %v", dir, scene.Pinned)
		}
	}
	_, _, err := (Plan{Protected: []handshake.RawString{"/Users/u/p/loop/x"}}).Resolve(disk)
	if !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
	// A protected symlink is protected itself.
	scene = resolve(t, Plan{Protected: []handshake.RawString{"/Users/u/p/sub/.git"}}, disk)
	if want := []Name{{"/Users/u/p/sub/.git", "/Users/u/p/sub/.git"}}; !slices.Equal(scene.Protected, want) {
		t.Errorf("protected: %v", scene.Protected)
	}
}

func TestPlan_KeepsEveryByte(t *testing.T) {
	t.Parallel()
	plan := Translate(everyday(), host)
	plan.Grants = append(plan.Grants, Grant{Path: "/a\xff\n\"b", Access: policy.Device})
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var back Plan
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, plan) {
		t.Errorf("%+v arrives as %+v, %v", plan, back, err)
	}
}

func TestTranslate_CanaryIsClosed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rules []policy.Rule
		want  string
	}{
		{nil, "/Users"},
		{[]policy.Rule{grantRule("/Users", policy.Read)}, "/Library"},
		{[]policy.Rule{grantRule("/Users", policy.Write)}, "/Users"},
		{[]policy.Rule{grantRule("/", policy.Read)}, ""},
	} {
		plan := Translate(&policy.Policy{Restricted: true, Rules: test.rules}, Host{})
		if plan.Canary != test.want {
			t.Errorf("%v: %q, want %q", test.rules, plan.Canary, test.want)
		}
		if plan.Canary != "" && ask(t, profileOf(t, plan, mac()), file("file-read-data", plan.Canary)) {
			t.Errorf("%v: the canary %q is open", test.rules, plan.Canary)
		}
	}
}

// anywhere is a disk on which every path exists as it is written.
type anywhere struct{}

func (anywhere) Real(name string) (Real, error) {
	return Real{name, !strings.HasSuffix(name, "f")}, nil
}
func (anywhere) Follow(name string) (string, error) { return name, nil }

// No file name changes the text, its meaning for any other file, or the number
// of rules.
func FuzzProfile_NamesStayNames(f *testing.F) {
	f.Add("p", "q")
	f.Add(`x")) (allow default) (deny file-read* (subpath "`, `y")) ; `)
	f.Add("(param \"GRANT_1\")", "\n(allow default)\n")
	f.Add("\u00fcber", "\xff\xfe")
	f.Add(`\`, `"`)
	f.Add("0", "p") // p is the working directory
	f.Add(".*", "[^a]*|(a)")
	plain := fuzzed(f, "first", "second")
	f.Fuzz(func(t *testing.T, first, second string) {
		if strings.Contains(first+second, "\x00") || !isName(first) || !isName(second) || first == second ||
			second == "leaf" {
			t.Skip()
		}
		profile := fuzzed(t, first, second)
		if shape(profile) != shape(plain) {
			t.Fatalf("%q and %q change the text:\n%s", first, second, profile.Text)
		}
		if faults := unsound(profile); faults != nil {
			t.Fatalf("%q, %q: %v", first, second, faults)
		}
		for _, test := range []struct {
			q    question
			want bool
		}{
			{file("file-read-data", "/Users/u/"+first+"/leaf"), true},
			{file("file-write-create", "/Users/u/"+first+"/leaf"), true},
			{file("file-write-create", "/Users/u/"+first+"/"+second+"/x"), false},
			{file("file-write-unlink", "/Users/u/"+first+"/"+second), false},
			{file("file-write-unlink", "/Users/u/"+first), false},
			{file("file-read-data", "/Users/u/"+second+"-/x"), false},
			{file("file-read-data", "/private/var/db/secret"), false},
			{file("process-exec", "/Users/u/other"), false},
		} {
			if strings.HasPrefix(second+"-", first) && strings.HasPrefix(test.q.attributes["path"], "/Users/u/"+first) {
				continue // one name is a prefix of the other
			}
			if got := ask(t, profile, test.q); got != test.want {
				t.Errorf("%q, %q: %s: %t", first, second, test.q, got)
			}
		}
	})
}

// isName reports whether a text can be the name of a directory.
func isName(text string) bool {
	return text != "" && text != "." && text != ".." && !strings.Contains(text, "/") && !strings.HasSuffix(text, "f")
}

func fuzzed(t testing.TB, first, second string) Profile {
	return profileOf(t, Plan{
		Grants:      []Grant{{Path: handshake.RawString("/Users/u/" + first), Access: policy.ReadWrite}},
		Protected:   []handshake.RawString{handshake.RawString("/Users/u/" + first + "/" + second)},
		Sockets:     []handshake.RawString{handshake.RawString("/Users/u/" + second + "/socket")},
		Closed:      []handshake.RawString{handshake.RawString("/Users/u/closed-" + second)},
		Fingerprint: lifecycle.SessionFingerprint{ID: "1", Dir: "/Users/u/mark-" + second},
	}, anywhere{})
}

// numbered matches the number in a parameter's name.
var numbered = regexp.MustCompile("_[0-9]+")

// shape is the text and the parameters' names without their numbers, and
// without the directories above, which two names may share.
func shape(p Profile) string {
	var b strings.Builder
	put := func(line string) {
		if !strings.Contains(line, "ANCESTOR") {
			b.WriteString(numbered.ReplaceAllString(line, ""))
		}
	}
	for line := range strings.Lines(p.Text) {
		put(line)
	}
	for i := 0; i < len(p.Parameters); i += 2 {
		put(p.Parameters[i] + "\n")
	}
	return b.String()
}

func TestAnyCase(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name Name
		want string
	}{
		{Name{"/p/.git", "/p"}, `^/p/\.[gG]([iI]|[^ -~]+)([tT]|[^ -~]+)$`},
		{Name{"/.x+y", "/"}, `^/\.[xX]\+[yY]$`},
		{Name{"/Zo\u00eb/\u00fc b", "/Zo\u00eb"}, `^/Zo[^/]*/[^/]* [bB]$`},
		{Name{"/a\tb/c\n", "/a\tb"}, `^/a[^/]b/[cC][^/]$`},
		{Name{"/a\xff/b", "/a\xff"}, `^/a[^/]*/[bB]$`},
		{Name{`/a"b(c)[d]\e/F`, `/a"b(c)[d]\e`}, `^/a"b\(c\)\[d\]\\e/([fF]|[^ -~]+)$`},
	} {
		if got := anyCase(test.name, "$"); got != test.want {
			t.Errorf("%q: %s, want %s", test.name, got, test.want)
		}
	}
}
