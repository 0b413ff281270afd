package gitwrite

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitchange"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("REPLACE_FOR_EVER"); path != "" {
		replaceForEver(path)
	}
	harness.Main(m)
}

func opened(t *testing.T, path, content string) int {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestReplace(t *testing.T) {
	t.Parallel()
	long := "[a]\n" + strings.Repeat("\tb = c\n", 3000)
	for _, test := range []struct{ before, after string }{
		{"", "[a]\n"},
		{"[a]\n", ""},
		{"[a]\nb = c\n", "[a]\nb = d\n"},
		{"[a]\n", long},
		{long, "[a]\n"},
		{long, long},
		{long, long + "d = e\n"},
		{long + "x", long},
	} {
		path := filepath.Join(t.TempDir(), "config")
		fd := opened(t, path, test.before)
		if err := Replace(fd, []byte("other"), []byte(test.after)); !errors.Is(err, ErrChanged) {
			t.Errorf("a file that has changed: %v", err)
		}
		if err := Replace(fd, []byte(test.before), []byte(test.after)); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(path); string(got) != test.after {
			t.Errorf("%d bytes became %d instead of %d: %v", len(test.before), len(got), len(test.after), err)
		}
	}
}

// Another sidecar that is writing is not disturbed.
func TestReplace_TakesTurns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config")
	fd := opened(t, path, "[a]\n")
	other := opened(t, path, "[a]\n")
	if err := unix.Flock(other, unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := Replace(fd, []byte("[a]\n"), []byte("[b]\n")); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("%v", err)
	}
}

// A full disk leaves the old file.
func TestReplace_OnAFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root can mount a small disk here")
	}
	dir := t.TempDir()
	if err := unix.Mount("small", dir, "tmpfs", 0, "size=64k"); err != nil {
		harness.Skip(t, "root", err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	const old = "[a]\n\tb = c\n"
	fd := opened(t, filepath.Join(dir, "config"), old)
	big := old + strings.Repeat("# more\n", 20000)
	if err := Replace(fd, []byte(old), []byte(big)); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v", err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "config")); string(got) != old {
		t.Errorf("%d bytes: %v", len(got), err)
	}
	if err := Replace(fd, []byte(old), []byte(old+"# x\n")); err != nil {
		t.Error(err)
	}
}

// versions are what replaceForEver writes, in a page.
func versions() []string {
	return []string{
		"[a]\n\tb = " + strings.Repeat("x", 3000) + "\n", "[a]\n",
		"[a]\n\tb = " + strings.Repeat("y", 2000) + "\n",
	}
}

func replaceForEver(path string) {
	fd, err := unix.Open(path, unix.O_RDWR, 0)
	if err != nil {
		os.Exit(1)
	}
	before, list := versions()[0], versions()
	for i := 1; ; i++ {
		after := list[i%len(list)]
		if Replace(fd, []byte(before), []byte(after)) != nil {
			os.Exit(2)
		}
		before = after
	}
}

// A sidecar that is killed leaves one of the two files, perhaps with empty lines
// at its end.
func TestReplace_Killed(t *testing.T) {
	t.Parallel()
	for i := range 30 {
		path := filepath.Join(t.TempDir(), "config")
		opened(t, path, versions()[0])
		command := exec.Command("/proc/self/exe")
		command.Env = append(os.Environ(), "REPLACE_FOR_EVER="+path)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, "it writes", func() bool {
			got, err := os.ReadFile(path)
			return err == nil && string(got) != versions()[0]
		})
		for range i * 100 {
			_ = syscall.Getppid() // a little later each time
		}
		_ = command.Process.Kill()
		_ = command.Wait()
		if command.ProcessState.Exited() {
			t.Fatal("it has failed: " + strconv.Itoa(command.ProcessState.ExitCode()))
		}
		got, err := os.ReadFile(path)
		whole := false
		for _, version := range versions() {
			whole = whole || strings.TrimRight(string(got), "\n")+"\n" == version
		}
		if err != nil || !whole {
			t.Errorf("%q: %v", got, err)
		}
	}
}

func TestRead_RefusesWhatGitDoesNotWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fd := opened(t, filepath.Join(dir, "a"), "[a]\n")
	if got, err := Read(fd); err != nil || string(got) != "[a]\n" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(fd); !errors.Is(err, errKind) {
		t.Errorf("two names: %v", err)
	}
	big := opened(t, filepath.Join(dir, "big"), strings.Repeat("#", MaxSize+1))
	if _, err := Read(big); !errors.Is(err, errSize) {
		t.Errorf("a big file: %v", err)
	}
	null, err := unix.Open("/dev/zero", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	if _, err := Read(null); !errors.Is(err, errKind) {
		t.Errorf("a device: %v", err)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for after, want := range map[string]error{
		"[user]\nname = x\n": nil, "[user]\nname = x\n#\x00\n": errNUL, "[user\n": errRejected,
		"[user]\nname = \"x\n":   errRejected,
		"[pull]\nff = \t only\n": nil,
		"[x \"" + strings.Repeat("y", 100000) + "\"]\n" + strings.Repeat("a\n", 1000): errRejected,
	} {
		const before = "[core]\nbare = false\n"
		if _, err := Judge([]byte(before), []byte(before+after), gitchange.Facts{}); !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", after, err, want)
		}
	}
	if _, err := Judge([]byte("[core\n"), []byte("[core]\n"), gitchange.Facts{}); !errors.Is(err, errOld) {
		t.Errorf("%v", err)
	}
}

// What git prints is bounded, and the time that it takes.
func TestAsk_IsBounded(t *testing.T) {
	t.Parallel()
	if installed() == "" {
		harness.Skip(t, "git", "git is not installed")
	}
	entries, err := ask(installed(), []byte("[a]\n\tb = c\n\td\n"), askTimeout)
	if err != nil || len(entries) != 2 || entries[0].Value != "c" || entries[1].Valued {
		t.Errorf("%+v, %v", entries, err)
	}
	if _, err := ask(installed(), []byte("[a\n"), askTimeout); !errors.Is(err, errRejected) {
		t.Errorf("%v", err)
	}
	for text, timeout := range map[string]time.Duration{"exec yes": askTimeout, "exec sleep 600": time.Millisecond} {
		program := filepath.Join(t.TempDir(), "git")
		text = "#!/bin/sh\n" + text + "\n"
		harness.WriteProgram(t, program, text)
		if _, err := ask(program, nil, timeout); !errors.Is(err, errDiffers) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
