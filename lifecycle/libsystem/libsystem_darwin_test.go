package libsystem

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestCheck_OfAProcessWithoutASandbox(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		operation, argument string
		filter              int
	}{
		{"", "", FilterNone},
		{"file-read-data", "/private/etc/hosts", FilterPath},
		{"mach-lookup", "sandbox-sidecar.test", FilterGlobalName},
	} {
		if answer, err := Check(os.Getpid(), test.operation, test.filter, test.argument); answer != 0 || err != nil {
			t.Errorf("%+v: %d, %v", test, answer, err)
		}
	}
}

// The variadic argument arrives: for a process that may read one path and not
// another, the answers differ.
func TestCheck_TakesItsArgument(t *testing.T) {
	t.Parallel()
	command := exec.Command("/usr/bin/sandbox-exec", "-p",
		`(version 1)(allow default)(deny file-read-data (literal "/private/etc/hosts"))`, "/bin/cat")
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		_ = command.Wait()
	}()
	// The output of cat shows that the profile is in force.
	if _, err := stdin.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/private/etc/hosts": 1, "/private/etc/services": 0} {
		if answer, err := Check(command.Process.Pid, "file-read-data", FilterPath, path); answer != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", path, answer, err, want)
		}
	}
	if answer, err := Check(command.Process.Pid, "", FilterNone, ""); answer != 1 || err != nil {
		t.Errorf("in a sandbox: %d, %v", answer, err)
	}
}

func TestIdentityOf(t *testing.T) {
	t.Parallel()
	parent, err := IdentityOf(os.Getpid())
	if err != nil || parent.UniqueID == 0 {
		t.Fatalf("%+v, %v", parent, err)
	}
	child := exec.Command("/bin/sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	identity, err := IdentityOf(child.Process.Pid)
	if err != nil || identity.ParentUniqueID != parent.UniqueID || identity.UniqueID == parent.UniqueID {
		t.Errorf("child of %+v: %+v, %v", parent, identity, err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if identity, err := IdentityOf(child.Process.Pid); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("a process that is gone: %+v, %v", identity, err)
	}
}

func TestRealPath(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "Zo\u00eb.txt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	real, err := RealPath(file)
	if err != nil || !strings.HasPrefix(real, dir+"/Zo") {
		t.Fatalf("%q, %v", real, err)
	}
	if other, err := RealPath(strings.ToUpper(file[len(file)-4:])); err == nil {
		t.Errorf("a relative path: %q", other)
	}
	if folded, err := RealPath(filepath.Join(dir, "ZO\u00cb.TXT")); err == nil && folded != real {
		t.Errorf("in another case: %q, want %q", folded, real)
	}
	if leaf, err := RealPath(link); err != nil || leaf != link {
		t.Errorf("a symlink itself: %q, %v", leaf, err)
	}
	if through, err := RealPath(link + "/Zo\u00eb.txt"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("through a symlink: %q, %v", through, err)
	}
	if data, err := RealPath("/System/Volumes/Data/Users"); err != nil || data != "/Users" {
		t.Errorf("through a firmlink: %q, %v", data, err)
	}
	if missing, err := RealPath(dir + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %q, %v", missing, err)
	}
}
