//go:build linux

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// changeActions change one file by one call.
var changeActions = map[string]action{
	// change-calls lists the calls that this machine's architecture has: "changes
	// NAME", or "makes NAME" for those that need no file.
	"change-calls": func([]string) error {
		for _, name := range slices.Sorted(maps.Keys(changes)) {
			if slices.Contains(makers, name) {
				fmt.Println("makes", name)
			} else {
				fmt.Println("changes", name)
			}
		}
		return nil
	},
	// change CALL DIR changes the Makefile of a directory, or makes it. It prints
	// "unsupported" if the kernel or the file system has no such call.
	"change": two(func(name, dir string) error {
		do, known := changes[name]
		if !known {
			return fmt.Errorf("%w: no call %q", errMisuse, name)
		}
		err := do(filepath.Join(dir, "Makefile"), filepath.Join(dir, "other"))
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY) {
			fmt.Println("unsupported")
			return nil
		}
		return err
	}),
	// write-fd FD TEXT writes to a descriptor that this process was given.
	"write-fd": two(func(number, text string) error {
		fd, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("%w: %w", errMisuse, err)
		}
		_, err = unix.Write(fd, []byte(text))
		return err
	}),
	// hold waits for a line.
	"hold": func([]string) error {
		fmt.Println("ready")
		_, err := os.Stdin.Read(make([]byte, 1))
		return err
	},
}

// change changes or makes the file at path. other is a file beside it.
type change func(path, other string) error

// Calls and constants that x/sys does not have.
const (
	sysSetxattrat, sysRemovexattrat, sysFileSetattr = 463, 466, 469

	fsIocSetflags, fsIocFSSetxattr = 0x40086602, 0x401c5820
	noDump                         = 0x40 // FS_NODUMP_FL
)

var value = [1]byte{'x'}

const attribute = "user.sidecar"

// changes has the calls of all architectures.
var changes = map[string]change{
	"openat-write": func(path, _ string) error { return writeThrough(path, unix.O_WRONLY) },
	"openat-rdwr":  func(path, _ string) error { return writeThrough(path, unix.O_RDWR) },
	"openat-trunc": func(path, _ string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
		return errors.Join(err, closeIf(fd, err))
	},
	"openat-create": func(path, _ string) error {
		return writeThrough(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	},
	"mmap": mapAndWrite,
	"openat2": func(path, _ string) error {
		how := unix.OpenHow{Flags: unix.O_WRONLY | unix.O_TRUNC | unix.O_CLOEXEC}
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		return errors.Join(err, closeIf(fd, err))
	},
	"truncate": func(path, _ string) error { return unix.Truncate(path, 1) },
	"linkat": func(path, other string) error {
		return unix.Linkat(unix.AT_FDCWD, other, unix.AT_FDCWD, path, 0)
	},
	"tmpfile":   linkTemporary,
	"symlinkat": func(path, other string) error { return unix.Symlinkat(other, unix.AT_FDCWD, path) },
	"renameat": func(path, other string) error {
		return unix.Renameat(unix.AT_FDCWD, other, unix.AT_FDCWD, path)
	},
	"exchange": func(path, other string) error {
		return unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE)
	},
	"mkdirat": func(path, _ string) error { return unix.Mkdirat(unix.AT_FDCWD, path, 0o700) },
	"mknodat": func(path, _ string) error {
		return unix.Mknodat(unix.AT_FDCWD, path, unix.S_IFREG|0o600, 0)
	},
	"bind":     func(path, _ string) error { return bindAt(path) },
	"fchmod":   opened(func(fd int) error { return unix.Fchmod(fd, 0o700) }),
	"fchmodat": func(path, _ string) error { return unix.Fchmodat(unix.AT_FDCWD, path, 0o700, 0) },
	"fchmodat2": func(path, _ string) error {
		return raw(fchmodat2, cwd, text(path), 0o700, unix.AT_SYMLINK_NOFOLLOW)
	},
	"fchown": opened(func(fd int) error { return unix.Fchown(fd, os.Getuid(), os.Getgid()) }),
	"fchownat": func(path, _ string) error {
		return unix.Fchownat(unix.AT_FDCWD, path, os.Getuid(), os.Getgid(), 0)
	},
	"utimensat":    func(path, _ string) error { return raw(unix.SYS_UTIMENSAT, cwd, text(path), 0, 0) },
	"futimens":     opened(func(fd int) error { return raw(unix.SYS_UTIMENSAT, uintptr(fd), 0, 0, 0) }),
	"setxattr":     func(path, _ string) error { return unix.Setxattr(path, attribute, value[:], 0) },
	"lsetxattr":    func(path, _ string) error { return unix.Lsetxattr(path, attribute, value[:], 0) },
	"fsetxattr":    opened(func(fd int) error { return unix.Fsetxattr(fd, attribute, value[:], 0) }),
	"removexattr":  func(path, _ string) error { return unix.Removexattr(path, attribute) },
	"lremovexattr": func(path, _ string) error { return unix.Lremovexattr(path, attribute) },
	"fremovexattr": opened(func(fd int) error { return unix.Fremovexattr(fd, attribute) }),
	"setxattrat": func(path, _ string) error {
		args := struct {
			value       uint64
			size, flags uint32
		}{uint64(uintptr(unsafe.Pointer(&value))), 1, 0}
		return raw(sysSetxattrat, cwd, text(path), 0, text(attribute), uintptr(unsafe.Pointer(&args)),
			unsafe.Sizeof(args))
	},
	"removexattrat": func(path, _ string) error {
		return raw(sysRemovexattrat, cwd, text(path), 0, text(attribute))
	},
	"file_setattr": func(path, _ string) error {
		var args [3]uint64 // struct file_attr
		return raw(sysFileSetattr, cwd, text(path), uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	},
	"ioctl-setflags": opened(func(fd int) error {
		flags := uint64(noDump)
		return raw(unix.SYS_IOCTL, uintptr(fd), fsIocSetflags, uintptr(unsafe.Pointer(&flags)))
	}),
	"ioctl-fssetxattr": opened(func(fd int) error {
		var args [28]byte // struct fsxattr
		return raw(unix.SYS_IOCTL, uintptr(fd), fsIocFSSetxattr, uintptr(unsafe.Pointer(&args)))
	}),
}

// makers are calls that make a file.
var makers = []string{
	"bind", "creat", "link", "linkat", "mkdir", "mkdirat", "mknod", "mknodat", "openat-create", "rename", "renameat",
	"symlink", "symlinkat", "tmpfile",
}

const cwd = ^uintptr(99) // AT_FDCWD

func text(s string) uintptr {
	p, _ := unix.BytePtrFromString(s)
	kept = append(kept, p)
	return uintptr(unsafe.Pointer(p))
}

// kept keeps what text has made.
var kept []*byte

func raw(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func closeIf(fd int, err error) error {
	if err != nil {
		return nil
	}
	return unix.Close(fd)
}

func opened(do func(fd int) error) change {
	return func(path, _ string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return errors.Join(do(fd), unix.Close(fd))
	}
}

func writeThrough(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, value[:])
	return errors.Join(err, unix.Close(fd))
}

func mapAndWrite(path, _ string) error {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	memory, err := unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	memory[0] = 'y'
	return errors.Join(unix.Munmap(memory), unix.Close(fd))
}

func linkTemporary(path, _ string) error {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	link := fmt.Sprintf("/proc/self/fd/%d", fd)
	return unix.Linkat(unix.AT_FDCWD, link, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
}

func bindAt(path string) error {
	if err := os.Chdir(filepath.Dir(path)); err != nil { // the name may be too long for an address
		return err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Base(path)})
}
