package git

import (
	"crypto/sha1"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// What git says about the repository above a project is current, and nobody
// else's repository counts.
func TestRefuses_IsCurrent(t *testing.T) {
	t.Parallel()
	a, host, top := asked(t, "[core]\n\tbare = false\n")
	project := filepath.Join(top, "a", ":b*")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	check := func(what, want string) {
		t.Helper()
		parent, ok := FindParent(resolve.NewView(resolve.OS), project)
		if !ok || parent.Top != top || parent.Linked {
			t.Fatalf("%s: %+v, %t", what, parent, ok)
		}
		for range 2 {
			if got := a.Refuses(host, project, parent, a.Ask(host, project)); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
	}
	check("a package", "")
	write(t, filepath.Join(top, ".gitignore"), "/a/:b?\n")
	check("ignored", Ignored)
	write(t, filepath.Join(top, "a", ".gitignore"), "!:b*\n")
	check("not ignored after all", "")
	elsewhere := filepath.Join(host.Home, "elsewhere")
	write(t, elsewhere, "a/\n")
	write(t, filepath.Join(host.Home, ".gitconfig"), "[core]\n\texcludesFile = ~/elsewhere\n")
	check("ignored by the user", Ignored)
	write(t, elsewhere, "")
	check("no longer", "")
	write(t, filepath.Join(top, ".git", "config"),
		"[core]\n\trepositoryformatversion = 0\n\tworktree = "+host.Home+"\n")
	check("another working tree", "git takes another repository there")
	write(t, filepath.Join(top, ".git", "config"), "[core\n")
	check("a configuration with a mistake", "git refuses it")
	write(t, filepath.Join(top, ".git", "config"), "")
	check("control", "")
	if os.Geteuid() == 0 { // an ordinary user can give nothing away
		write(t, filepath.Join(host.Home, ".gitconfig"), "[safe]\n\tdirectory = *\n")
		if err := os.Chown(top, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		check("another user's", "another user owns it")
	}
}

// Without git nobody knows.
func TestRefuses_WithoutGit(t *testing.T) {
	t.Parallel()
	a, host, top := asked(t, "")
	project := filepath.Join(top, "a")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	parent, _ := FindParent(resolve.NewView(resolve.OS), project)
	host.Platform = "darwin"
	if why := a.Refuses(host, project, parent, nil); why == "" {
		t.Error("it counts")
	}
	host.Platform = "linux"
	if why := a.Refuses(host, project, parent, nil); why != "" {
		t.Errorf("control: %s", why)
	}
}

// Files whose content the index names are held; changed, unknown and hidden ones
// are not, and no lie of the index tells what a file holds.
func TestHolds(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for _, format := range []string{"sha1", "sha256"} {
		top := t.TempDir()
		git := func(args ...string) string {
			t.Helper()
			command := exec.Command("git", args...)
			command.Dir, command.Env = top, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("git %s: %v: %s", args, err, out)
			}
			return strings.TrimSpace(string(out))
		}
		git("init", "-q", "--object-format="+format, ".")
		if err := os.Mkdir(filepath.Join(top, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, name := range []string{"a/.env", "changed", "forged", "link", "nul", "untracked", ".env"} {
			path := filepath.Join(top, name)
			write(t, path, "SECRET=\x00"+name)
			files = append(files, path)
		}
		git("add", "a/.env", "changed", "link", "nul", ".env")
		git("update-index", "--add", "--cacheinfo", "100644,"+git("hash-object", "-w", "changed")+",forged")
		write(t, filepath.Join(top, "changed"), "SECRET=y")
		if err := os.Remove(filepath.Join(top, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("nul", filepath.Join(top, "link")); err != nil {
			t.Fatal(err)
		}
		parent := Parent{Top: top, Dir: filepath.Join(top, ".git"), own: filepath.Join(top, ".git")}
		for _, version := range []string{"2", "4"} {
			git("update-index", "--index-version", version)
			var held []string
			for _, path := range parent.Holds(resolve.NewView(resolve.OS), files) {
				held = append(held, strings.TrimPrefix(path, top+"/"))
			}
			if want := []string{".env", "a/.env", "nul"}; !slices.Equal(held, want) {
				t.Errorf("%s, version %s: %q, want %q", format, version, held, want)
			}
		}
	}
}

// A session that writes the index guesses once for each file.
func TestHolds_CannotBeGuessed(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	write(t, filepath.Join(top, ".env"), "PIN=7")
	for _, first := range []int{7, 0} {
		index := []byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x0a")
		for i := range 10 {
			id := sha1.Sum(fmt.Appendf(nil, "blob 5\x00PIN=%d", (first+i)%10)) //nolint:gosec // of git's objects
			entry := slices.Concat(make([]byte, 24), []byte{0, 0, 0x81, 0xa4}, make([]byte, 12), id[:],
				[]byte("\x00\x04.env"))
			index = append(append(index, entry...), make([]byte, 8-len(entry)%8)...)
		}
		if err := os.MkdirAll(filepath.Join(top, ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(top, ".git", "index"), string(index))
		parent := Parent{Top: top, Dir: filepath.Join(top, ".git"), own: filepath.Join(top, ".git")}
		held := parent.Holds(resolve.NewView(resolve.OS), []string{filepath.Join(top, ".env")})
		if (len(held) == 1) != (first == 7) {
			t.Errorf("the first guess is %d: %q", first, held)
		}
	}
}
