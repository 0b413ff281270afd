package denials

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// git outside writes through a symlink that it finds in the place of one of its
// files, and waits for a FIFO. So in a repository's directory a session makes
// regular files and directories only. See docs/design/git-repositories.md.

// gitMakers are the calls that can make something else, or bring it there;
// beside bind(2).
var gitMakers = []string{
	"symlink", "symlinkat", "link", "linkat", "rename", "renameat", "renameat2", "mknod", "mknodat",
}

// argument is a path argument of a call with the directory that it starts from.
type argument struct {
	dir     int
	address uint64
}

// making is a name that a call makes.
type making struct {
	to argument
	// kind is what is made (S_IFMT); 0 if it is what from is.
	kind   uint32
	target uint64   // of a symlink
	from   argument // of what is linked or renamed
	follow bool     // from
}

// makingsOf returns the names that a call makes; none if it is no such call.
func makingsOf(call *notify.Call, name string) []making {
	a := call.Args
	at := func(dir, path int) argument {
		if dir == workDir {
			return argument{unix.AT_FDCWD, a[path]}
		}
		return argument{int(int32(a[dir])), a[path]}
	}
	switch name {
	case "symlink":
		return []making{{to: at(workDir, 1), kind: unix.S_IFLNK, target: a[0]}}
	case "symlinkat":
		return []making{{to: at(1, 2), kind: unix.S_IFLNK, target: a[0]}}
	case "mknod":
		return []making{{to: at(workDir, 0), kind: kindOfMode(a[1])}}
	case "mknodat":
		return []making{{to: at(0, 1), kind: kindOfMode(a[2])}}
	case "link", "rename":
		return []making{{to: at(workDir, 1), from: at(workDir, 0)}}
	case "linkat":
		return []making{{to: at(2, 3), from: at(0, 1), follow: a[4]&unix.AT_SYMLINK_FOLLOW != 0}}
	case "renameat":
		return []making{{to: at(2, 3), from: at(0, 1)}}
	case "renameat2":
		list := []making{{to: at(2, 3), from: at(0, 1)}}
		if a[4]&unix.RENAME_EXCHANGE != 0 {
			list = append(list, making{to: at(0, 1), from: at(2, 3)})
		}
		if a[4]&unix.RENAME_WHITEOUT != 0 { // a device, in the place of what is moved away
			list = append(list, making{to: at(0, 1), kind: unix.S_IFCHR})
		}
		return list
	}
	return nil
}

// kindOfMode is what mknod(2) makes.
func kindOfMode(mode uint64) uint32 {
	if kind := uint32(mode) & unix.S_IFMT; kind != 0 {
		return kind
	}
	return unix.S_IFREG
}

// gitDir returns the directory of a repository that contains a clean path; "" if
// there is none.
func (o *Observer) gitDir(path string) string {
	for _, dir := range o.options.Policy.GitDirs {
		if policy.Contains(dir, path) {
			return dir
		}
	}
	return ""
}

// plainInGit reports whether a call that makes a name in a repository's directory
// only brings a regular file there. It belongs to the fast path: false means that
// nobody knows yet.
func (o *Observer) plainInGit(call *notify.Call, name string) bool {
	from := pathArg{op: opRemove, dir: workDir, path: 0, flags: none}
	switch name {
	case "link", "rename":
	case "renameat":
		from.dir, from.path = 0, 1
	case "linkat", "renameat2":
		if from.dir, from.path = 0, 1; call.Args[4] != 0 {
			return false
		}
	default:
		return false
	}
	w, readable := o.literalPath(call, name, from)
	if !readable || w.name == "" {
		return false
	}
	o.rootMu.RLock()
	defer o.rootMu.RUnlock()
	if o.rootFD < 0 {
		return false
	}
	fd, err := o.openInMemory(w.name, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	return unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFREG
}

// refuseInGit refuses a call that makes something in a repository's directory
// that is neither a regular file nor a directory, and reports it. It returns
// false if the call is none.
func (o *Observer) refuseInGit(call *notify.Call, root int, name string) bool {
	if len(o.options.Policy.GitDirs) == 0 || !o.started.Load() {
		return false
	}
	for _, m := range makingsOf(call, name) {
		text, err := call.Text(m.to.address)
		if errors.Is(err, unix.EFAULT) {
			call.Fail(unix.EFAULT) // see refuseMissing
			return true
		}
		if err == nil && o.refuseMaking(call, root, text, m) {
			return true
		}
	}
	return false
}

// refuseMaking does this for one name, which begins at m.to.dir.
func (o *Observer) refuseMaking(call *notify.Call, root int, text string, m making) bool {
	if text == "" || fsguard.Answers(text) != nil {
		return false
	}
	at := walk{call: call, root: root, fd: -1}
	defer at.close()
	err := at.start(creation{dir: m.to.dir, text: text})
	if err == nil {
		err = at.follow(text, false)
	}
	var dir string
	if err == nil {
		dir, err = os.Readlink(fdPath(at.fd))
	}
	path := filepath.Join(dir, at.name)
	repository := o.gitDir(path)
	var why string
	switch {
	case err == nil && repository == "":
		return false
	case err == nil:
		why, err = o.strangeInGit(call, root, m, strings.TrimPrefix(path, repository+"/"))
	}
	switch {
	case nothingThere(err):
		return false // the kernel answers the same
	case err != nil:
		call.Fail(errnoOf(err))
		return true
	case why == "":
		return false
	}
	shown := display.Shorten(display.Quote(strings.TrimPrefix(path, filepath.Dir(repository)+"/")), maxShown)
	denial := o.describe(call, refusal{access: platform.RefusedCreate, target: path})
	denial.Detail = fmt.Sprintf(why, shown)
	o.options.Report(denial)
	call.Fail(unix.EPERM)
	return true
}

// Why a name in a repository's directory is refused. Each has the name.
const (
	whyLink   = "%s as a symlink: git outside would follow it"
	whyOther  = "%s, which is no file: git outside would wait for it"
	whyHolds  = "%s with symlinks in it: git outside would follow them"
	whyUnseen = "%s: not all of it could be read, and symlinks may be in it"

	maxShown = 32 // characters of the name
)

// strangeInGit says why something must not come to a path of a repository's
// directory; "" if it may. name is the path from there.
func (o *Observer) strangeInGit(call *notify.Call, root int, m making, name string) (why string, err error) {
	if m.kind == unix.S_IFLNK && isProbe(call, m.target, name) {
		return "", nil
	}
	kind := m.kind
	if kind == 0 {
		from := walk{call: call, root: root, fd: -1}
		defer from.close()
		if kind, err = from.kindOf(m); err != nil {
			return "", err
		}
		if kind == unix.S_IFDIR {
			return searchTree(&from), nil
		}
	}
	switch kind {
	case unix.S_IFREG, unix.S_IFDIR:
		return "", nil
	case unix.S_IFLNK:
		return whyLink, nil
	}
	return whyOther, nil
}

// isProbe reports whether a symlink is the one by which git finds out, in a new
// repository, whether the file system has symlinks. git removes it at once. If
// git may not make it, it checks out symlinks as files. A submodule has its new
// repository in modules, or in that of a linked worktree.
func isProbe(call *notify.Call, target uint64, name string) bool {
	dir, base := filepath.Split(name)
	parts := strings.SplitN(dir, "/", 4)
	ofModule := parts[0] == "modules" || len(parts) == 4 && parts[0] == "worktrees" && parts[2] == "modules"
	if dir != "" && !ofModule || len(base) != len("tXXXXXX") || base[0] != 't' ||
		strings.IndexFunc(base, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) >= 0 {
		return false
	}
	text, err := call.Text(target)
	return err == nil && text == "testing"
}

// kindOf walks to what is linked or renamed, and says what it is (S_IFMT).
func (w *walk) kindOf(m making) (uint32, error) {
	text, err := w.call.Text(m.from.address)
	if err != nil {
		return 0, err
	}
	if text == "" { // linkat(2) with AT_EMPTY_PATH
		link := fmt.Sprintf("/proc/%d/fd/%d", w.call.TID, m.from.dir)
		w.fd, err = openat(unix.AT_FDCWD, link, unix.O_PATH|unix.O_CLOEXEC)
	} else if err = fsguard.Answers(text); err == nil {
		if err = w.start(creation{dir: m.from.dir, text: text}); err == nil {
			err = w.walk(text, m.follow)
		}
	}
	if err != nil {
		return 0, err
	}
	var stat unix.Stat_t
	if w.name == "" {
		err = unix.Fstat(w.fd, &stat)
	} else {
		err = unix.Fstatat(w.fd, w.name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	}
	return stat.Mode & unix.S_IFMT, err
}

// The bounds of the search in a directory that is moved, for which its caller
// waits. A new repository of a submodule has some hundred entries.
const (
	maxTreeEntries = 20_000
	maxTreeDepth   = 32
)

var errUnlike = errors.New("neither a regular file nor a directory")

// searchTree says why a directory must not be moved into that of a repository; ""
// if all that is in it are regular files and directories.
func searchTree(at *walk) (why string) {
	name := at.name
	if name == "" {
		name = "."
	}
	left := maxTreeEntries
	switch err := searchDir(at.fd, name, maxTreeDepth, &left); {
	case errors.Is(err, errUnlike):
		return whyHolds
	case err != nil:
		return whyUnseen
	}
	return ""
}

// searchDir returns errUnlike if something else is in a directory, and another
// error if not all of it could be seen.
func searchDir(parent int, name string, depth int, left *int) error {
	fd, err := openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), fdPath(fd))
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(256)
		for _, entry := range entries {
			*left--
			switch {
			case *left < 0 || entry.IsDir() && depth == 0:
				return unix.E2BIG
			case entry.IsDir():
				if err := searchDir(fd, entry.Name(), depth-1, left); err != nil {
					return err
				}
			case !entry.Type().IsRegular():
				return errUnlike
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// makesInGit reports whether a call can make something strange at a path of a
// repository's directory.
func (o *Observer) makesInGit(name, path string) bool {
	return len(o.options.Policy.GitDirs) > 0 && slices.Contains(gitMakers, name) && o.gitDir(path) != ""
}
