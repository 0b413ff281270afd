package main

import (
	"maps"
	"os"

	"golang.org/x/sys/unix"
)

func init() { maps.Copy(changes, oldChanges) }

// oldChanges has calls that newer architectures do not have.
var oldChanges = map[string]change{
	"open":      func(path, _ string) error { return raw(unix.SYS_OPEN, text(path), unix.O_WRONLY|unix.O_TRUNC) },
	"creat":     func(path, _ string) error { return raw(unix.SYS_CREAT, text(path), 0o600) },
	"link":      func(path, other string) error { return raw(unix.SYS_LINK, text(other), text(path)) },
	"symlink":   func(path, other string) error { return raw(unix.SYS_SYMLINK, text(other), text(path)) },
	"rename":    func(path, other string) error { return raw(unix.SYS_RENAME, text(other), text(path)) },
	"mkdir":     func(path, _ string) error { return raw(unix.SYS_MKDIR, text(path), 0o700) },
	"mknod":     func(path, _ string) error { return raw(unix.SYS_MKNOD, text(path), unix.S_IFREG|0o600, 0) },
	"chmod":     func(path, _ string) error { return raw(unix.SYS_CHMOD, text(path), 0o700) },
	"chown":     func(path, _ string) error { return raw(unix.SYS_CHOWN, text(path), uid(), gid()) },
	"lchown":    func(path, _ string) error { return raw(unix.SYS_LCHOWN, text(path), uid(), gid()) },
	"utime":     func(path, _ string) error { return raw(unix.SYS_UTIME, text(path), 0) },
	"utimes":    func(path, _ string) error { return raw(unix.SYS_UTIMES, text(path), 0) },
	"futimesat": func(path, _ string) error { return raw(unix.SYS_FUTIMESAT, cwd, text(path), 0) },
}

func uid() uintptr { return uintptr(os.Getuid()) }

func gid() uintptr { return uintptr(os.Getgid()) }
