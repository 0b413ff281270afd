//go:build unix

package darwin

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
)

// hereFiles are this machine's files; the spelling is as written.
type hereFiles struct{}

func (hereFiles) Real(name string) (Real, error) {
	for at := filepath.Dir(name); at != "/"; at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return Real{}, &fs.PathError{Op: "find", Path: name, Err: syscall.ELOOP}
		}
	}
	info, err := os.Lstat(name)
	if err != nil {
		return Real{}, err
	}
	return Real{Path: name, Dir: info.IsDir()}, nil
}

func (hereFiles) Follow(name string) (string, error) { return filepath.EvalSymlinks(name) }

// questions returns what macOS asks a profile while an act is performed. All
// must be allowed.
func questions(t *testing.T, act platformtest.Act) []question {
	t.Helper()
	// The kernel asks about the file that a path leads to. If the name itself
	// is meant, it asks about that name in its real directory.
	file := func(operation, path string) question { return file(operation, follow(t, path)) }
	named := func(operation, path string) question {
		return question{operation, map[string]string{"path": filepath.Join(follow(t, filepath.Dir(path)),
			filepath.Base(path))}}
	}
	switch act.Verb {
	case platformtest.Read, platformtest.List:
		return []question{file("file-read-data", act.Path)}
	case platformtest.Write, platformtest.Truncate:
		return []question{file("file-write-data", act.Path)}
	case platformtest.Create, platformtest.MakeDir, platformtest.Symlink:
		return []question{named("file-write-create", act.Path)}
	case platformtest.Remove:
		return []question{named("file-write-unlink", act.Path)}
	case platformtest.Rename:
		list := []question{named("file-write-unlink", act.Path), named("file-write-create", act.Target)}
		if _, err := os.Lstat(act.Target); err == nil {
			list = append(list, named("file-write-unlink", act.Target))
		}
		return list
	case platformtest.Link:
		return []question{
			named("file-link", act.Path), named("file-link", act.Target),
			named("file-write-create", act.Target),
		}
	case platformtest.Execute:
		return []question{file("process-exec", act.Path)}
	case platformtest.Connect:
		return []question{unixSocket("network-outbound", follow(t, act.Path))}
	case platformtest.Kill:
		return []question{with("signal", "target", "others")}
	}
	t.Fatalf("what the kernel asks about %s is not known", act.Verb)
	return nil
}

func follow(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// Package linux runs the same table on the Linux kernel. So a policy means the
// same on both systems, as far as macOS's questions are known.
func TestProfile_AnswersAsTheTableSays(t *testing.T) {
	t.Parallel()
	agreed, byDesign := 0, 0
	for _, c := range platformtest.Table {
		dir, err := os.MkdirTemp("", "t-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		scene := c.Set(t, follow(t, dir))
		profile := profileOf(t, Translate(scene.Policy, Host{}), hereFiles{})
		for i, try := range c.Tries {
			allowed := true
			for _, q := range questions(t, scene.Acts[i]) {
				allowed = ask(t, profile, q) && allowed
			}
			want := try.Allowed
			if reason := try.Except["darwin"]; reason != "" {
				byDesign++
				want = !want
				t.Logf("differs by design: %s: %s", scene.Acts[i], reason)
			}
			if allowed != want {
				t.Errorf("%s: %s: %t\n%s", c.Name, scene.Acts[i], allowed, profile)
				continue
			}
			agreed++
		}
	}
	t.Logf("%d answers of the evaluator are those of the table; %d of them differ from Linux by design",
		agreed, byDesign)
}

// The table must fail for wrong profiles.
func TestProfile_TheTableRejectsWrongProfiles(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"open":   "(version 1)(allow default)",
		"closed": "(version 1)(deny default)",
	} {
		wrong := map[string]bool{}
		for _, c := range platformtest.Table {
			dir, err := os.MkdirTemp("", "t-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			scene := c.Set(t, follow(t, dir))
			for i, try := range c.Tries {
				for _, q := range questions(t, scene.Acts[i]) {
					wrong[c.Name] = wrong[c.Name] || ask(t, Profile{Text: text}, q) != try.Allowed
				}
			}
		}
		for _, c := range platformtest.Table {
			refusesAlone := c.Name == "what everybody may read is not granted by itself" ||
				c.Name == "processes outside cannot be signalled"
			if !wrong[c.Name] && (name == "open" || !refusesAlone) {
				t.Errorf("%s: an %s profile passes the table", c.Name, name)
			}
		}
	}
}

// Every protection that the table needs exists in this report too.
func TestTable_NeedsAreProtections(t *testing.T) {
	t.Parallel()
	known := fmt.Sprint(platform.Protections)
	for _, c := range platformtest.Table {
		for _, try := range c.Tries {
			if try.Needs != "" && !strings.Contains(known, try.Needs) {
				t.Errorf("%s: %q is not a protection", c.Name, try.Needs)
			}
		}
	}
}
