package darwin

import (
	"io/fs"
	"path"
	"strings"
	"syscall"
	"testing"
)

// disk is a file system like that of macOS: it ignores case and keeps the
// spelling. A value is "dir", "file", or "-> " and a symlink's target.
type disk map[string]string

// mac is a Mac with a user's project.
func mac() disk {
	d := disk{}
	d.add("dir", "/Users/u/p/.git/hooks", "/Users/u/p/src", "/Users/u/.config/zed", "/Users/u/.ssh",
		"/Users/u/tools/bin", "/usr/bin", "/usr/lib",
		"/private/etc", "/private/tmp/tmux-501", "/private/var/folders/xy/T", "/private/var/run", "/dev",
		"/opt/homebrew/bin",
		"/Users/u/.local/state/sandbox-sidecar/run/s1", "/Users/u/.local/state/sandbox-sidecar/run/s2", "/Applications",
		"/Users/Zoë/p")
	d.add("file", "/Users/u/p/.git/config", "/Users/u/p/main.go", "/Users/u/.zshrc", "/Users/u/.ssh/id_rsa",
		"/Users/u/.config/zed/settings.json",
		"/private/var/run/docker.sock", "/private/tmp/tmux-501/default", "/dev/null", "/dev/ttys003",
		"/Users/u/tools/bin/tool", "/private/etc/hosts",
		"/Users/u/.local/state/sandbox-sidecar/trust.json", "/Users/u/bin/sandbox-sidecar")
	d.add("-> /private/tmp", "/tmp")
	d.add("-> /private/var", "/var")
	d.add("-> /private/etc", "/etc")
	return d
}

func (d disk) add(kind string, names ...string) {
	for _, name := range names {
		d[name] = kind
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			d[dir] = "dir"
		}
	}
	d["/"] = "dir"
}

// spelling finds an entry in any case.
func (d disk) spelling(name string) (string, bool) {
	if _, ok := d[name]; ok {
		return name, true
	}
	for entry := range d {
		if strings.EqualFold(entry, name) {
			return entry, true
		}
	}
	return "", false
}

func (d disk) Real(name string) (Real, error) {
	names := strings.Split(strings.TrimPrefix(name, "/"), "/")
	at := "/"
	for i, part := range names {
		if part == "" {
			break
		}
		spelt, ok := d.spelling(path.Join(at, part))
		switch {
		case !ok:
			return Real{}, &fs.PathError{Op: "find", Path: name, Err: syscall.ENOENT}
		case i < len(names)-1 && strings.HasPrefix(d[spelt], "-> "):
			return Real{}, &fs.PathError{Op: "find", Path: name, Err: syscall.ELOOP}
		case i < len(names)-1 && d[spelt] != "dir":
			return Real{}, &fs.PathError{Op: "find", Path: name, Err: syscall.ENOTDIR}
		}
		at = spelt
	}
	return Real{Path: at, Dir: d[at] == "dir"}, nil
}

func (d disk) Follow(name string) (string, error) {
	for range maxLinks {
		real, err := d.Real(name)
		if err != nil {
			return "", err
		}
		target, ok := strings.CutPrefix(d[real.Path], "-> ")
		if !ok {
			return real.Path, nil
		}
		name = path.Join("/", target)
		if !path.IsAbs(target) {
			name = path.Join(path.Dir(real.Path), target)
		}
	}
	return "", syscall.ELOOP
}

// profileOf resolves a plan and writes its profile.
func profileOf(t testing.TB, plan Plan, files Files) Profile {
	t.Helper()
	scene, _, err := plan.Resolve(files)
	if err != nil {
		t.Fatal(err)
	}
	scene.Terminal, scene.WorkDir = "/dev/ttys003", "/Users/u/p"
	return scene.Profile()
}
