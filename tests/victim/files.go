//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var fileActions = map[string]action{
	"read":          one(func(path string) error { return show(unix.AT_FDCWD, path, 0) }),
	"read-in":       two(readIn),
	"read-fd":       one(readDescriptor),
	"write":         two(func(path, text string) error { return write(path, text, unix.O_CREAT|unix.O_TRUNC) }),
	"append":        two(func(path, text string) error { return write(path, text, unix.O_APPEND) }),
	"openat2":       two(openat2),
	"list":          one(list),
	"mkdir":         one(func(path string) error { return unix.Mkdir(path, 0o700) }),
	"rmdir":         one(unix.Rmdir),
	"unlink":        one(unix.Unlink),
	"truncate":      one(func(path string) error { return unix.Truncate(path, 0) }),
	"truncate-open": one(truncateOpen),
	"chmod":         one(func(path string) error { return unix.Chmod(path, 0o640) }),
	"utime":         one(func(path string) error { return unix.Utime(path, &unix.Utimbuf{Actime: 1, Modtime: 1}) }),
	"chown":         one(chown),
	"acl":           one(accessList),
	"setxattr":      one(func(path string) error { return unix.Setxattr(path, "user.victim", []byte("1"), 0) }),
	"mkfifo":        one(func(path string) error { return unix.Mkfifo(path, 0o600) }),
	"mknod":         two(mknod),
	"chdir":         one(unix.Chdir),
	"race":          two(race),
	"create-raced":  two(createRaced),
	"mark-opened":   two(markOpened),
}

// someone is a user id that no test runs as.
const someone = 12345

// chown gives a file to somebody else as root, and otherwise to its owner.
func chown(path string) error {
	if os.Geteuid() == 0 {
		return unix.Chown(path, someone, someone)
	}
	return unix.Chown(path, os.Geteuid(), os.Getegid())
}

// accessList lets somebody else read and write a file, by a POSIX access control
// list (acl(5); struct posix_acl_xattr_header, linux/posix_acl_xattr.h). The
// file's mode then shows the mask as the group's permissions.
func accessList(path string) error {
	const version, userObj, user, groupObj, mask, other, none = 2, 1, 2, 4, 16, 32, ^uint32(0)
	list := binary.LittleEndian.AppendUint32(nil, version)
	for _, entry := range []struct {
		tag, permissions uint16
		id               uint32
	}{{userObj, 6, none}, {user, 6, someone}, {groupObj, 0, none}, {mask, 6, none}, {other, 0, none}} {
		list = binary.LittleEndian.AppendUint16(list, entry.tag)
		list = binary.LittleEndian.AppendUint16(list, entry.permissions)
		list = binary.LittleEndian.AppendUint32(list, entry.id)
	}
	return unix.Setxattr(path, "system.posix_acl_access", list, 0)
}

// show prints a file's content.
func show(dir int, path string, flags int) error {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return err
	}
	return drain(fd)
}

func drain(fd int) error {
	file := os.NewFile(uintptr(fd), "file")
	defer file.Close()
	_, err := io.Copy(os.Stdout, file)
	fmt.Println()
	return err
}

// readIn opens a directory and then a file by the directory's descriptor.
func readIn(dir, name string) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return show(fd, name, 0)
}

// readDescriptor reads a file by a descriptor that this process may have
// inherited.
func readDescriptor(number string) error {
	fd, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%w: %w", errMisuse, err)
	}
	return drain(fd)
}

func write(path, text string, flags int) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC|flags, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}

// openat2 reads a file by openat2(2): "plain", "beneath" or "no-links" restrict
// how the path is resolved. "larger" passes a larger structure than the kernel
// knows, filled with zeros, as a program for a newer kernel does.
func openat2(path, how string) error {
	var larger struct {
		unix.OpenHow
		_ [64]byte
	}
	larger.Flags = unix.O_RDONLY | unix.O_CLOEXEC
	size := unsafe.Sizeof(larger.OpenHow)
	dir := unix.AT_FDCWD
	switch how {
	case "plain":
	case "no-links":
		larger.Resolve = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	case "beneath":
		root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		dir, path, larger.Resolve = root, path[1:], unix.RESOLVE_BENEATH
	case "larger":
		size = unsafe.Sizeof(larger)
	default:
		return fmt.Errorf("%w: unknown way %q", errMisuse, how)
	}
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_OPENAT2, uintptr(dir), uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(&larger)), size, 0, 0)
	if errno != 0 {
		return errno
	}
	return drain(int(fd))
}

// truncateOpen empties a file by opening it for reading.
func truncateOpen(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func list(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), dir)
	defer file.Close()
	names, err := file.Readdirnames(-1)
	for _, name := range names {
		fmt.Println(name)
	}
	return err
}

// mknod makes the device null (character 1:3) or a loop device (block 7:0)
// under a name of its own.
func mknod(path, kind string) error {
	switch kind {
	case "char":
		return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
	case "block":
		return unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0)))
	}
	return fmt.Errorf("%w: unknown kind %q", errMisuse, kind)
}

// raceTime bounds race.
const raceTime = time.Second

// race exchanges an existing directory and a symlink to another one without
// end, and meanwhile appends to "target" below the changing name. It is done
// once the file in the other directory has grown. The first directory must have
// no "target".
func race(dir, other string) error {
	link := dir + ".link"
	if err := unix.Symlink(other, link); err != nil {
		return err
	}
	stop := make(chan struct{})
	swapped := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				swapped <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				swapped <- err
				return
			}
		}
	}()
	last := error(unix.EACCES)
	refused := false
	for end := time.Now().Add(raceTime); time.Now().Before(end); {
		err := write(dir+"/target", "caught", unix.O_APPEND)
		if err == nil {
			last = nil
			break
		}
		// In the directory itself the file does not exist. Any other error
		// comes from behind the link.
		if !errors.Is(err, unix.ENOENT) {
			last, refused = err, true
		}
	}
	close(stop)
	if err := <-swapped; err != nil {
		return fmt.Errorf("%w: swap: %w", errMisuse, err)
	}
	if last != nil && !refused {
		return fmt.Errorf("%w: the link was never crossed", errMisuse)
	}
	return last
}
