package namespace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// realDir is a temporary directory by its real path.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	harness.Must(t, err)
	return dir
}

// An included file is read as it was opened, and nothing else is read.
func TestOpenInclude_ReadsSmallRegularFilesAlone(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	harness.Write(t, at("config"), "Host a\n")
	harness.Write(t, at("large"), strings.Repeat("#", maxSSHConfig+1))
	harness.Must(t, errors.Join(os.Symlink("config", at("link")), unix.Mkfifo(at("fifo"), 0o600),
		os.Mkdir(at("dir"), 0o700), os.Symlink("dir", at("way"))))
	harness.Write(t, at("dir/config"), "Host b\n")
	found, err := openInclude(at("config"))
	if err != nil || string(found.content) != "Host a\n" || found.foreign {
		t.Fatalf("%+v, %v", found, err)
	}
	defer unix.Close(found.place)
	for name, want := range map[string]error{
		"link": unix.ELOOP, "way/config": unix.ELOOP, "fifo": errNoConfig, "dir": errNoConfig, "large": errNoConfig,
		"gone": unix.ENOENT,
	} {
		if got, err := openInclude(at(name)); !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v, want %v", name, got, err, want)
		}
	}
}

// Changing the path meanwhile moves no other file into the session.
func TestOpenInclude_IsNotMovedToAnotherFile(t *testing.T) {
	t.Parallel()
	rounds, _ := harness.Generated(t, 200, 11)
	dir := realDir(t)
	config, other := filepath.Join(dir, "config"), filepath.Join(dir, "other")
	harness.Write(t, config, "Host a\n")
	harness.Write(t, filepath.Join(dir, "secret"), "secret\n")
	harness.Must(t, os.Symlink("secret", other))
	exchange(t, config, other)
	if content, err := os.ReadFile(config); err != nil || string(content) != "secret\n" {
		t.Fatalf("who follows the link reads %q, %v", content, err)
	}
	if _, err := openInclude(config); !errors.Is(err, unix.ELOOP) {
		t.Fatal(err)
	}
	exchange(t, config, other)
	whileExchanged(t, config, other, func() {
		for range rounds {
			found, err := openInclude(config)
			if err != nil {
				if !errors.Is(err, unix.ELOOP) {
					t.Fatal(err)
				}
				continue
			}
			unix.Close(found.place)
			if string(found.content) != "Host a\n" {
				harness.Breach(t, "read %q through a symlink", found.content)
			}
		}
	})
}

// Included files are found at any depth, each once, and the own ones are not
// covered.
func TestForeignIncludes(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	config := filepath.Join(dir, "config")
	const foreign = "/etc/passwd" // of root
	harness.Write(t, config, "Include "+dir+"/d/*\nInclude "+config+"\n")
	harness.Must(t, os.Mkdir(filepath.Join(dir, "d"), 0o700))
	harness.Write(t, filepath.Join(dir, "d/own"), "Include "+foreign+" "+dir+"/gone\n")
	harness.Write(t, filepath.Join(dir, "d/again"), "Include "+foreign+" "+config+"\n")
	var got []string
	for _, file := range foreignIncludes(config) {
		got = append(got, file.path)
		unix.Close(file.place)
	}
	real, err := filepath.EvalSymlinks(foreign)
	harness.Must(t, err)
	want := real
	if os.Geteuid() == 0 {
		want = "" // it is this user's own
	}
	if strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// exchange swaps two names in one step.
func exchange(t *testing.T, first, second string) {
	t.Helper()
	harness.Must(t, unix.Renameat2(unix.AT_FDCWD, first, unix.AT_FDCWD, second, unix.RENAME_EXCHANGE))
}

// whileExchanged swaps two names again and again until attempts returns.
func whileExchanged(t *testing.T, first, second string, attempts func()) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			err := unix.Renameat2(unix.AT_FDCWD, first, unix.AT_FDCWD, second, unix.RENAME_EXCHANGE)
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	defer func() {
		close(stop)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	attempts()
}
