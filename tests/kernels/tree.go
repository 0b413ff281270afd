package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// tree is the guest's root file system while it is made.
type tree struct {
	dir  string
	arch architecture
}

// etc are files that programs expect.
var etc = map[string]string{
	"etc/passwd": "root:x:0:0::/home/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n" +
		"nobody:x:65534:65534::/:/bin/false\n",
	"etc/group": "root:x:0:\ntty:x:5:\nuser:x:1000:\nnogroup:x:65534:\n",
	"etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
	// No server is there. Sessions get their own file over this one.
	"etc/resolv.conf": "nameserver 127.0.0.1\n",
}

// build makes it: the first process, the sidecar, the suites, the programs.
func (t tree) build(ctx context.Context, suites []suite) error {
	dir := t.dir
	for _, sub := range []string{
		"proc", "sys", "dev", "tmp", "etc", "home", "mnt", "run", "srv", "boot", "suite", "programs", "modules",
		"var/lib", "var/tmp", "usr/bin",
	} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	for name, content := range etc {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := t.linkTopLevel(); err != nil {
		return err
	}
	if err := t.disk(ctx); err != nil {
		return err
	}
	if err := t.compile(ctx, "init", "build", "tests/kernels/guest"); err != nil {
		return err
	}
	for _, pkg := range commands {
		if err := t.compile(ctx, path.Join("programs", pkg), "build", pkg); err != nil {
			return err
		}
	}
	for _, s := range suites {
		place := path.Join("suite", s.pkg)
		if err := t.compile(ctx, path.Join(place, "suite.test"), "test -c", s.pkg); err != nil {
			return err
		}
		for _, data := range s.data {
			if err := os.CopyFS(filepath.Join(dir, place, data), os.DirFS(filepath.Join(s.pkg, data))); err != nil {
				return err
			}
		}
	}
	if t.arch.name != runtime.GOARCH {
		return nil // this machine's programs do not run there
	}
	for _, name := range programs {
		if err := t.program(ctx, name); err != nil {
			return err
		}
	}
	if err := t.python(ctx); err != nil {
		return err
	}
	if err := t.git(ctx); err != nil {
		return err
	}
	// tmux does not start without a terminal's description and a UTF-8 locale.
	return errors.Join(t.copyDir("/usr/lib/locale/C.utf8"), t.copyDir("/usr/lib/terminfo"), t.copyDir("/lib/terminfo"))
}

// git copies what git has besides its program: "git submodule" is a script.
func (t tree) git(ctx context.Context) error {
	const dir = "/usr/lib/git-core/"
	envsubst := dir + "git-sh-i18n--envsubst"
	return errors.Join(
		t.copyDir("/usr/share/git-core/templates"), t.copyFile(dir+"git-submodule"), t.copyFile(dir+"git-sh-setup"),
		t.copyFile(dir+"git-sh-i18n"), t.copyFile(envsubst), t.libraries(ctx, envsubst),
	)
}

// disk makes the disk with the homes. The initial root file system cannot have
// the overlays that programs' caches get in sessions, unlike a disk.
func (t tree) disk(ctx context.Context) error {
	const bytes = 64 << 20
	path := filepath.Join(t.dir, "disk")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, bytes)); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make the guest's disk: %w\n%s", err, out)
	}
	return nil
}

// linkTopLevel makes /bin and the like links if they are on this machine, so
// that copied files have the same paths.
func (t tree) linkTopLevel() error {
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		to, err := os.Readlink("/" + name)
		if err != nil {
			if err := os.MkdirAll(filepath.Join(t.dir, name), 0o755); err != nil {
				return err
			}
			continue
		}
		to = strings.TrimPrefix(to, "/")
		if err := errors.Join(os.MkdirAll(filepath.Join(t.dir, to), 0o755),
			os.Symlink(to, filepath.Join(t.dir, name))); err != nil {
			return err
		}
	}
	return nil
}

// compile runs the go command, static and without debugging information: the
// guest holds it all in memory.
func (t tree) compile(ctx context.Context, to, verb, pkg string) error {
	target := filepath.Join(t.dir, to)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", append(strings.Fields(verb), "-trimpath", "-ldflags", "-s -w",
		"-o", target, "./"+pkg)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+t.arch.name)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return nil
}

// program copies one of this machine's, and its libraries.
func (t tree) program(ctx context.Context, name string) error {
	// Not in a user's own PATH, which the tests do not use.
	for _, dir := range []string{"/usr/bin", "/usr/sbin"} {
		file := filepath.Join(dir, name)
		if err := t.copyFile(file); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		return t.libraries(ctx, file)
	}
	return fmt.Errorf("find a program for the guest: %s: neither in /usr/bin nor in /usr/sbin", name)
}

// libraries copies what a program or a library is linked with.
func (t tree) libraries(ctx context.Context, file string) error {
	out, err := exec.CommandContext(ctx, "ldd", file).Output()
	var static *exec.ExitError
	if errors.As(err, &static) {
		return nil
	} else if err != nil {
		return err
	}
	for field := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(field, "/") {
			if err := t.copyFile(field); err != nil {
				return err
			}
		}
	}
	return nil
}

// pythonUses are the imports of the attacks' scripts. The interpreter lists the
// files that they need.
const pythonUses = `
import os, socket, sys, threading
"x".encode("idna")
for module in list(sys.modules.values()):
	for file in getattr(module, "__file__", None), getattr(module, "__cached__", None):
		if file and os.path.exists(file):
			print(file)
`

func (t tree) python(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "/usr/bin/python3", "-c", pythonUses).Output()
	if err != nil {
		return fmt.Errorf("ask python for its files: %w", withStderr(err))
	}
	for line := range bytes.Lines(out) {
		file := string(bytes.TrimSpace(line))
		if err := t.copyFile(file); err != nil {
			return err
		}
		if strings.HasSuffix(file, ".so") {
			if err := t.libraries(ctx, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t tree) copyDir(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		return t.copyFile(path)
	})
}

// copyFile copies the file at a path, following links, under the path's last
// name.
func (t tree) copyFile(path string) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return err
	}
	target := filepath.Join(t.dir, dir, filepath.Base(path))
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, data, 0o755)
}

// pack writes a directory as an initial file system. Several of them can be
// concatenated.
func pack(ctx context.Context, dir string, to io.Writer) error {
	var names strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(dir, path)
		names.WriteString(rel + "\n")
		return errors.Join(err, relErr)
	})
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "cpio", "--create", "--format=newc", "--quiet", "--owner=0:0")
	command.Dir, command.Stdin, command.Stdout, command.Stderr = dir, strings.NewReader(names.String()), to, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("pack the guest's files: %w", err)
	}
	return nil
}
