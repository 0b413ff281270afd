package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The reader finds the same links as git, in all versions of the format.
func TestGitlinks_AgreesWithGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	want := []string{"a/link", "link", "z/" + strings.Repeat("long/", 60) + "link"}
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "3", "4"} {
			dir := t.TempDir()
			git := func(args ...string) string {
				t.Helper()
				command := exec.Command("git", args...)
				command.Dir, command.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null",
					"GIT_CONFIG_NOSYSTEM=1")
				out, err := command.CombinedOutput()
				if err != nil {
					t.Fatalf("git %s: %v: %s", args, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			git("init", "-q", "--object-format="+format, ".")
			for _, name := range []string{"a/x", "a/xy", "file", "m/n/o", "z/zz"} {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			git("add", ".")
			id := git("hash-object", "file")
			for _, path := range want {
				git("update-index", "--add", "--cacheinfo", "160000,"+id+","+path)
			}
			if version == "3" { // git writes it if an entry has an extended flag
				git("update-index", "--skip-worktree", "file")
			} else {
				git("update-index", "--index-version", version)
			}
			index, err := os.ReadFile(filepath.Join(dir, ".git/index"))
			if err != nil {
				t.Fatal(err)
			}
			if got := index[7]; got != version[0]-'0' {
				t.Fatalf("git wrote version %d, not %s", got, version)
			}
			if got := gitlinks(index, format == "sha256", 100); !slices.Equal(got, want) {
				t.Errorf("%s, version %s: %q", format, version, got)
			}
			if got := gitlinks(index, format == "sha256", 1); len(got) != 1 {
				t.Errorf("the bound: %q", got)
			}
		}
	}
}

// A session can write anything to the index.
func FuzzGitlinks(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"+strings.Repeat("x", 62)+"a\x00"), false)
	f.Add([]byte("DIRC\x00\x00\x00\x04\xff\xff\xff\xff"+strings.Repeat("\x00", 200)), true)
	f.Add([]byte("DIRC\x00\x00\x00\x03\xff\xff\xff\xff"+strings.Repeat("\xff", 200)), false)
	f.Fuzz(func(t *testing.T, index []byte, wide bool) {
		if got := gitlinks(index, wide, 3); len(got) > 3 {
			t.Errorf("%q", got)
		}
	})
}
