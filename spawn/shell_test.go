package spawn

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
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
