package fsguard

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ErrNoAnswer means that a file system has not answered in time.
var ErrNoAnswer = errors.New("the file system does not answer")

// Stat is os.Stat.
func Stat(path string) (fs.FileInfo, error) { return described(path, opStat, os.Stat) }

// Lstat is os.Lstat.
func Lstat(path string) (fs.FileInfo, error) {
	if !anyRemote() {
		return os.Lstat(path)
	}
	at, err := real(path, false)
	if err != nil {
		return nil, err
	}
	return LstatPlain(at)
}

// LstatPlain is os.Lstat of a clean path without symlinks on the way to its
// last name.
func LstatPlain(path string) (fs.FileInfo, error) {
	remote := remoteOf(path)
	if remote == nil {
		return os.Lstat(path)
	}
	return remote.info(request{Op: opLstat, Path: text(path)})
}

// ReadlinkPlain is os.Readlink of a clean path without symlinks on the way to
// its last name.
func ReadlinkPlain(path string) (string, error) {
	remote := remoteOf(path)
	if remote == nil {
		return os.Readlink(path)
	}
	done, err := remote.call(request{Op: opReadlink, Path: text(path)})
	return string(done.Text), err
}

// ReadDir lists a directory, sorted, up to a number of entries; 0 means all.
func ReadDir(path string, most int) ([]Entry, error) {
	remote, at, err := follow(path)
	if err != nil {
		return nil, err
	}
	if remote == nil {
		return readDir(at, most)
	}
	done, err := remote.call(request{Op: opReadDir, Path: text(at), Most: most})
	var list []Entry
	for _, found := range done.Entries {
		list = append(list, Entry{string(found.Name), found.Type})
	}
	return list, err
}

// Entry is one entry of a directory.
type Entry struct {
	Name string
	// Type holds only the type bits, but see ReadModes.
	Type fs.FileMode
}

func readDir(path string, most int) ([]Entry, error) {
	// Without the flag, opening a FIFO waits for a writer, perhaps for ever. A
	// session can put one in the place of a directory.
	dir, err := os.OpenFile(path, os.O_RDONLY|onlyDirectory, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return readEntries(dir, most, fs.DirEntry.Type)
}

func readEntries(dir *os.File, most int, typeOf func(fs.DirEntry) fs.FileMode) ([]Entry, error) {
	found, err := dir.ReadDir(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	list := make([]Entry, 0, len(found))
	for _, entry := range found {
		list = append(list, Entry{Name: entry.Name(), Type: typeOf(entry)})
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// ReadModes is ReadDir with the permissions of regular files in their Type. Of a
// remote file system, where each would be a question, it returns ErrRemote.
func ReadModes(path string, most int) ([]Entry, error) {
	remote, at, err := follow(path)
	if err != nil {
		return nil, err
	}
	if remote != nil {
		return nil, ErrRemote
	}
	dir, err := os.OpenFile(at, os.O_RDONLY|onlyDirectory, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return readEntries(dir, most, func(entry fs.DirEntry) fs.FileMode {
		if !entry.Type().IsRegular() {
			return entry.Type()
		}
		mode, err := modeIn(dir, entry)
		if err != nil {
			return fs.ModeIrregular // it is gone
		}
		return mode
	})
}

// ErrRemote means that a question is not put to a remote file system.
var ErrRemote = errors.New("it is on a remote file system")

// File is the content of a file. If Before and After differ, the file changed
// meanwhile.
type File struct {
	Before, After fs.FileInfo
	// Data is the content, up to one byte more than was asked for; nil if it is
	// not a regular file.
	Data []byte
}

// ReadFile reads a regular file up to a number of bytes.
func ReadFile(path string, most int) (File, error) {
	remote, at, err := follow(path)
	if err != nil {
		return File{}, err
	}
	if remote == nil {
		return readFile(at, most)
	}
	done, err := remote.call(request{Op: opReadFile, Path: text(at), Most: most})
	if err != nil {
		return File{}, err
	}
	return File{Before: done.Info, After: done.After, Data: done.Data}, nil
}

func readFile(path string, most int) (File, error) {
	// O_NONBLOCK: without it, opening a FIFO waits for a writer, perhaps
	// forever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	return readOpen(file, most)
}

func readOpen(file *os.File, most int) (read File, err error) {
	if read.Before, err = file.Stat(); err != nil {
		return File{}, err
	}
	if !read.Before.Mode().IsRegular() {
		read.After = read.Before
		return read, nil
	}
	// The read needs the limit too: the file may grow meanwhile.
	data := bytes.NewBuffer(make([]byte, 0, min(read.Before.Size(), int64(most))+bytes.MinRead))
	if _, err = data.ReadFrom(io.NewSectionReader(file, 0, int64(most)+1)); err != nil {
		return File{}, err
	}
	read.Data = data.Bytes()
	read.After, err = file.Stat()
	return read, err
}

// MkdirAll is os.MkdirAll. It makes nothing if a symlink is dangling, nothing in
// a home directory that does not exist ([ErrNoHome]), and as root nothing in a
// directory of another user ([ErrOthersDirectory]).
func MkdirAll(path string, mode fs.FileMode) error {
	remote, _, err := follow(path)
	if err == nil {
		err = mayMake(path)
	}
	if err != nil {
		return err
	}
	if remote == nil {
		return os.MkdirAll(path, mode)
	}
	_, err = remote.call(request{Op: opMkdirAll, Path: text(path), Mode: mode})
	return err
}

// EvalSymlinks is filepath.EvalSymlinks of an absolute path.
func EvalSymlinks(path string) (string, error) {
	if !anyRemote() {
		return filepath.EvalSymlinks(path)
	}
	at, err := real(path, true)
	if err == nil {
		_, err = LstatPlain(at)
	}
	return at, err
}

// Local reports whether a call with this path uses only local file systems. It
// never waits.
func Local(path string) bool {
	if !anyRemote() {
		return true
	}
	local := true
	_, _ = walk(path, true, func(at string) bool {
		local = remoteOf(at) == nil
		return local
	})
	return local
}

// Answers returns ErrNoAnswer if a call with this path would wait for an
// unresponsive file system. It is for calls that the helper cannot make: on a
// descriptor, or under another identity. The answer is about this moment.
func Answers(path string) error {
	if Local(path) {
		return nil
	}
	if _, err := Stat(path); errors.Is(err, ErrNoAnswer) {
		return err
	}
	return nil
}

// Kind is the kind of a path's file system if the helper makes calls on it;
// otherwise "".
func Kind(path string) string {
	remote, _, err := follow(path)
	switch {
	case remote != nil:
		return remote.kind
	case errors.Is(err, ErrNoAnswer):
		return "unresponsive"
	}
	return ""
}

func described(path string, op operation, local func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	remote, at, err := follow(path)
	if err != nil {
		return nil, err
	}
	if remote == nil {
		return local(at)
	}
	return remote.info(request{Op: op, Path: text(at)})
}

// follow finds the target of a path and its file system; nil if calls on it are
// made directly.
func follow(path string) (*remote, string, error) {
	if !anyRemote() {
		return nil, path, nil
	}
	at, err := real(path, true)
	if err != nil {
		return nil, path, err
	}
	return remoteOf(at), at, nil
}

const maxLinks = 40 // as in path_resolution(7)

// real follows the symlinks in a path, and the last one only if last is true. A
// part that does not exist or cannot be inspected stays as it is: the caller's
// own call then returns the error.
func real(path string, last bool) (string, error) { return walk(path, last, nil) }

// walk is real. It calls step before it inspects each name, and ends if step
// returns false.
func walk(path string, last bool, step func(at string) bool) (string, error) {
	if !filepath.IsAbs(path) {
		return path, nil
	}
	at, rest, links := "/", path, 0
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if step != nil && !step(next) {
			return next, nil
		}
		if !last && strings.Trim(rest, "/") == "" {
			return next, nil
		}
		info, err := LstatPlain(next)
		switch {
		case errors.Is(err, ErrNoAnswer):
			return "", err
		case err != nil && leadsBack(rest):
			return "", err
		case err != nil:
			return filepath.Join(next, rest), nil
		case info.Mode()&fs.ModeSymlink == 0 && !info.IsDir() && leadsBack(rest):
			return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		target, err := ReadlinkPlain(next)
		if links++; err == nil && links > maxLinks {
			err = &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		}
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = target + "/" + rest
	}
	return at, nil
}

// leadsBack reports whether the rest of a path has a "..". After a name that is
// no directory the kernel finds nothing, but cleaning the path would.
func leadsBack(rest string) bool { return slices.Contains(strings.Split(rest, "/"), "..") }
