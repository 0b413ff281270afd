package fsguard

import (
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

// LstatPlain is os.Lstat of a clean path to which no symlink leads.
func LstatPlain(path string) (fs.FileInfo, error) {
	remote := remoteOf(path)
	if remote == nil {
		return os.Lstat(path)
	}
	return remote.info(request{Op: opLstat, Path: text(path)})
}

// ReadlinkPlain is os.Readlink of a clean path to whose directory no symlink
// leads.
func ReadlinkPlain(path string) (string, error) {
	remote := remoteOf(path)
	if remote == nil {
		return os.Readlink(path)
	}
	done, err := remote.call(request{Op: opReadlink, Path: text(path)})
	return string(done.Text), err
}

// ReadDir lists a directory, sorted, up to so many entries; 0 is all of them.
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

// Entry is what a directory says of a name in it.
type Entry struct {
	Name string
	// Type has the bits of the type alone.
	Type fs.FileMode
}

func readDir(path string, most int) ([]Entry, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	found, err := dir.ReadDir(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	var list []Entry
	for _, entry := range found {
		list = append(list, Entry{Name: entry.Name(), Type: entry.Type()})
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// File is what was read of a file. Unless before and after are alike it changed
// meanwhile.
type File struct {
	Before, After fs.FileInfo
	// Data is what the file holds, up to a byte more than was asked for; nil
	// where it is no regular file.
	Data []byte
}

// ReadFile reads a regular file of up to so many bytes.
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
	// O_NONBLOCK: without it, opening a FIFO waits for a writer, perhaps for
	// ever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	var read File
	if read.Before, err = file.Stat(); err != nil {
		return File{}, err
	}
	if !read.Before.Mode().IsRegular() {
		read.After = read.Before
		return read, nil
	}
	// The limit holds for the read too: the file may grow meanwhile.
	if read.Data, err = io.ReadAll(io.NewSectionReader(file, 0, int64(most)+1)); err != nil {
		return File{}, err
	}
	read.After, err = file.Stat()
	return read, err
}

// MkdirAll is os.MkdirAll. It makes nothing where a symlink leads nowhere.
func MkdirAll(path string, mode fs.FileMode) error {
	remote, _, err := follow(path)
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

// Local reports whether a call by this path asks this machine's own file
// systems alone. It never waits.
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

// Answers returns ErrNoAnswer where a call by this path would wait for a file
// system that does not answer, for calls that cannot be made here: those on a
// descriptor, or in another's name. It is right about this moment.
func Answers(path string) error {
	if Local(path) {
		return nil
	}
	if _, err := Stat(path); errors.Is(err, ErrNoAnswer) {
		return err
	}
	return nil
}

// Kind names the kind of a path's file system where calls on it are made by the
// helper; else it returns "".
func Kind(path string) string {
	remote, _, err := follow(path)
	switch {
	case remote != nil:
		return remote.kind
	case errors.Is(err, ErrNoAnswer):
		return "one that does not answer"
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

// follow finds where a path leads, and the file system that is there; nil where
// calls on it are made here.
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

// real follows the symlinks on a path, that at its end only where last is true.
// What is not there, or cannot be looked at, stays as it is written: whoever
// uses the path is told why.
func real(path string, last bool) (string, error) { return walk(path, last, nil) }

// walk is real, and asks step before each name is looked at; a no ends it.
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

// leadsBack reports whether the rest of a path has a "..": behind a name that
// is no directory the kernel finds nothing, where a clean path would.
func leadsBack(rest string) bool { return slices.Contains(strings.Split(rest, "/"), "..") }
