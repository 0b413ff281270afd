package spawn

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func TestLoginShell(t *testing.T) {
	t.Parallel()
	program, argv := LoginShell([]string{"A=b", "SHELL=/opt/bin/fish"})
	if program != "/opt/bin/fish" || !slices.Equal(argv, []string{"-fish"}) {
		t.Errorf("got %q %q", program, argv)
	}
	program, argv = LoginShell([]string{"SHELL="})
	if !filepath.IsAbs(program) || !slices.Equal(argv, []string{"-" + filepath.Base(program)}) {
		t.Errorf("without SHELL: got %q %q", program, argv)
	}
}

// bash runs command lines if it is there and the session can run it.
func TestCommandShell(t *testing.T) {
	t.Parallel()
	open := CommandShell(&policy.Policy{})
	bash, err := filepath.EvalSymlinks(open)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/bin/bash"); err == nil && open != "/bin/bash" {
		t.Errorf("unrestricted: %s", open)
	}
	if got := CommandShell(&policy.Policy{Restricted: true}); got != "/bin/sh" {
		t.Errorf("bash may not run: %s", got)
	}
	rules := []policy.Rule{{Path: filepath.Dir(bash), Access: policy.Read | policy.Execute}}
	if got := CommandShell(&policy.Policy{Restricted: true, Rules: rules}); got != open {
		t.Errorf("bash may run: %s, want %s", got, open)
	}
}

func TestPasswdShell(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "passwd")
	content := "root:x:0:0:root:/root:/bin/bash\n# comment\nbroken:x:7\nempty:x:8:8::/:\nuser:x:1000:1000:A, " +
		"B:/home/user:/usr/bin/zsh\nuser2:x:1000:1:::/bin/second\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[int]string{
		0: "/bin/bash", 1000: "/usr/bin/zsh", 7: "/bin/sh", 8: "/bin/sh",
		4711: "/bin/sh",
	} {
		if got := passwdShell(file, uid); got != want {
			t.Errorf("uid %d: got %q, want %q", uid, got, want)
		}
	}
	if got := passwdShell(file+".missing", 0); got != "/bin/sh" {
		t.Errorf("without the file: got %q", got)
	}
}
