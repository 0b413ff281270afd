package namespace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// insideTest names the directory of the test that runs in namespaces of its own.
const insideTest = "SIDECAR_TEST_REOPENED"

// The mounts leave to a session what the policy says, also where protected paths,
// patterns and reopened paths lie in each other.
func TestMounts_AgreeWithThePolicy(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(insideTest); dir != "" {
		compareMounts(t, dir)
		return
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), insideTest+"="+dir)
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := command.CombinedOutput()
	if command.ProcessState == nil {
		harness.Skip(t, "user_namespaces", fmt.Sprint(err))
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// compareMounts makes the mounts of policies that are drawn at random, each in a
// directory of its own.
func compareMounts(t *testing.T, top string) {
	t.Helper()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var writable, closed, again int
	for i := range 200 {
		root := filepath.Join(top, fmt.Sprint(i))
		dirs := below(root, 4)
		if err := os.MkdirAll(root, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		p := &policy.Policy{Rules: []policy.Rule{{Path: root, Access: policy.ReadWrite}}}
		some := func() string { return dirs[random.IntN(len(dirs))] }
		for range 1 + random.IntN(4) {
			p.Protected = append(p.Protected, policy.Protected{Path: some()})
		}
		for range 1 + random.IntN(4) {
			p.Reopened = append(p.Reopened, some())
		}
		if random.IntN(3) == 0 { // what exists has an entry of its own
			dir := filepath.Dir(some())
			p.Protected = append(p.Protected, policy.Protected{Path: dir + "/a*", Pattern: true},
				policy.Protected{Path: dir + "/a"})
		}
		result, err := PlanMounts(p).mount()
		if err != nil || len(result.Symlinks) > 0 {
			t.Fatalf("%+v: %v, %+v", p, err, result)
		}
		for _, dir := range append(dirs, root) {
			err := os.Mkdir(filepath.Join(dir, "new"), 0o700)
			want := p.At(dir).Has(policy.Write)
			if got := err == nil; got != want {
				t.Fatalf("%s can be written: %t, want %t (%v), by %+v", dir, got, want, err, p)
			}
			switch _, within := (&policy.Policy{Protected: p.Protected}).ProtectedAt(dir); {
			case !want:
				closed++
			case within:
				again++
			default:
				writable++
			}
		}
	}
	if min(writable, closed, again) < 100 {
		t.Errorf("%d writable, %d protected, %d reopened: the policies are too simple", writable, closed, again)
	}
}

// below are all directories below one, of two names each.
func below(dir string, depth int) (list []string) {
	if depth == 0 {
		return nil
	}
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name)
		list = append(append(list, path), below(path, depth-1)...)
	}
	return list
}
