// Package resolve finds out where a path of a settings file leads.
//
// [Host.Expand] replaces ~ and $VAR. [View.Resolve] then follows the path as the
// kernel would and lists the symlinks that it crossed. A [View] remembers what it
// saw, so that all parts of one evaluation see the same file system.
package resolve

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// FS is what an evaluation asks the machine: its file system, two names and its
// addresses. Tests replace it. Lstat and Readlink get only paths whose directories
// are no symlinks.
type FS struct {
	Lstat    func(path string) (fs.FileMode, error)
	Readlink func(path string) (string, error)
	ReadDir  func(path string) ([]string, error)
	ReadFile func(path string) ([]byte, error)
	// Dirs lists the directories in a directory, and ".git" whatever it is.
	// ErrNotAllFound means that it has more names than are read: any are missing.
	Dirs func(path string) ([]string, error)
	// Find lists the paths below a directory, at any depth, whose last name
	// matches one of the patterns, in which each * stands for any characters: the
	// nearest first. It follows no symlink, and does not look into what
	// policy.LeftOut names. ErrNotAllFound means that it came to a bound; the list
	// has what it found before.
	Find func(root string, patterns []string) ([]string, error)
	// Links lists the symlinks below directories, a few levels deep, the nearest
	// first. It follows none, and does not look into what policy.LeftOut names.
	// ErrNotAllFound means that it came to a bound; the list has what it found
	// beside.
	Links func(roots []string) ([]string, error)
	// Modes lists what is in a directory, with the permissions of regular files. It
	// returns fsguard.ErrRemote for one of a remote file system.
	Modes func(path string) (Modes, error)
	// Oldest lists at most so many names in a directory, those first whose file of a
	// name changed longest ago, and those without the file last. ErrNotAllFound
	// means that there are more, and ErrTooManyNames that there are more than
	// MaxNames: then it lists none.
	Oldest func(dir, file string, most int) ([]string, error)
	// Hostname is the machine's name, and HomeOf another user's home directory.
	Hostname func() (string, error)
	HomeOf   func(name string) (string, error)
	// Addresses are those of the machine's network interfaces, as text.
	Addresses func() ([]string, error)
}

// OS is the machine itself.
var OS = FS{
	Lstat: func(path string) (fs.FileMode, error) {
		info, err := fsguard.LstatPlain(path)
		if err != nil {
			return 0, err
		}
		return info.Mode(), nil
	},
	Readlink: fsguard.ReadlinkPlain,
	ReadDir:  names,
	ReadFile: func(path string) ([]byte, error) {
		data, _, err := textfile.Read(path)
		return data, err
	},
	Dirs:     dirs,
	Find:     find,
	Links:    func(roots []string) ([]string, error) { return LinksBy(list, roots) },
	Modes:    modes,
	Oldest:   oldest,
	Hostname: os.Hostname,
	HomeOf: func(name string) (string, error) {
		found, err := user.Lookup(name)
		if err != nil {
			return "", err
		}
		return found.HomeDir, nil
	},
	Addresses: addresses,
}

// names lists a directory. A session can fill one. Nobody has MaxNames settings
// files or submodules.
func names(path string) ([]string, error) { return namesUpTo(path, MaxNames) }

// namesUpTo lists a directory. If it has more names, any of them are missing.
func namesUpTo(path string, most int) (list []string, err error) {
	entries, err := fsguard.ReadDir(path, most)
	for _, entry := range entries {
		list = append(list, entry.Name)
	}
	return list, err
}

func addresses() ([]string, error) {
	interfaces, err := net.InterfaceAddrs()
	var list []string
	for _, one := range interfaces {
		if prefix, err := netip.ParsePrefix(one.String()); err == nil {
			list = append(list, prefix.Addr().String())
		}
	}
	slices.Sort(list)
	return list, err
}

// Modes are the entries of a directory.
type Modes struct {
	Entries []fsguard.Entry
	sum     string // of all entries
}

// NewModes returns a list of entries.
func NewModes(entries []fsguard.Entry) Modes {
	var all []byte
	for _, entry := range entries {
		all = append(append(strconv.AppendUint(all, uint64(entry.Type), 8), '/'), entry.Name...)
		all = append(all, '/')
	}
	sum := sha256.Sum256(all)
	return Modes{Entries: entries, sum: string(sum[:])}
}

func modes(path string) (Modes, error) {
	entries, err := fsguard.ReadModes(path, MaxNames)
	if err != nil {
		return Modes{}, err
	}
	return NewModes(entries), nil
}

// MaxNames bounds the names that OS lists of a directory.
const MaxNames = 10_000

// maxLinks is Linux's own limit (path_resolution(7)); macOS stops at 32.
const maxLinks = 40

// ErrTooManyLinks means that a path crosses more than maxLinks symlinks.
var ErrTooManyLinks = errors.New("too many levels of symlinks")

// Target is where a path leads.
type Target struct {
	// Path is absolute, clean and, as far as it exists, free of symlinks.
	Path string
	// Mode is the file's; it means nothing unless Exists.
	Mode   fs.FileMode
	Exists bool
	// Err is why the path could not be followed to its end. A missing file is
	// no error.
	Err error
	// Detour: a ".." followed a name that is no directory, or is missing. The
	// kernel refuses such a path.
	Detour bool
	// Links are the symlinks that were crossed. They must not be changed.
	Links []Link
	// Left are the directories that a ".." left again. They must not be changed.
	Left []string
}

// Link is a symlink: its own path, and the directory that contains it.
type Link struct{ Path, Dir string }

// Step is a name, and the directory that it was looked up in.
type Step struct{ Dir, Name string }

// View resolves paths and remembers what it saw. It lives only as long as one
// evaluation, and only one goroutine may use it.
type View struct {
	FS       FS
	seen     map[string]Entry
	resolved map[string]Target
	found    map[string]finding
}

// finding is an answer of FS.Find.
type finding struct {
	paths []string
	err   error
}

// Entry is a file by its name: its mode or, of a symlink, where it leads.
type Entry struct {
	Mode   fs.FileMode
	Target string // of a symlink
	Err    error
}

// someEntries is how many an evaluation of few settings looks up. Maps of that
// size are not copied while they grow.
const someEntries = 400

// NewView returns a view that has seen nothing yet.
func NewView(f FS) *View {
	return &View{
		FS: f, seen: make(map[string]Entry, someEntries), resolved: make(map[string]Target, someEntries),
		found: map[string]finding{},
	}
}

// Entry looks up one file without following a symlink.
func (r *View) Entry(path string) Entry {
	if e, ok := r.seen[path]; ok {
		return e
	}
	var e Entry
	e.Mode, e.Err = r.FS.Lstat(path)
	if e.Err == nil && e.Mode&fs.ModeSymlink != 0 {
		e.Target, e.Err = r.FS.Readlink(path)
	}
	r.seen[path] = e
	return e
}

// Find is FS.Find, which is asked once for the same patterns. Nobody may change
// the list.
func (r *View) Find(root string, patterns []string) ([]string, error) {
	key := root + separator + strings.Join(patterns, separator)
	answer, known := r.found[key]
	if !known {
		answer.paths, answer.err = r.FS.Find(root, patterns)
		r.found[key] = answer
	}
	return answer.paths, answer.err
}

// Resolve follows an absolute path as the kernel would: name by name, with each
// ".." taken from the current directory and not from the text. A missing name
// is kept as it is written. The walk goes on, because a ".." behind it may lead
// back to a directory that exists.
func (r *View) Resolve(path string) Target {
	if known, ok := r.resolved[path]; ok {
		return known
	}
	target := r.walk(path, nil)
	r.resolved[path] = target
	return target
}

// RealHomes are the user's home directories by their real paths, see
// [Host.Homes].
func (r *View) RealHomes(h Host) []string {
	var list []string
	for _, home := range h.Homes() {
		list = append(list, r.Resolve(home).Path)
	}
	return list
}

// Steps are the names that Resolve looks up for a path, each in a directory
// without symlinks. A watch on the path has to watch these.
func (r *View) Steps(path string) []Step {
	var steps []Step
	r.walk(path, func(dir, name string) { steps = append(steps, Step{dir, name}) })
	return steps
}

// walk is Resolve. It calls step, if that is not nil, for each name that it
// looks up.
func (r *View) walk(path string, step func(dir, name string)) Target {
	result := Target{Path: "/", Mode: fs.ModeDir, Exists: true}
	rest := path
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			result.Detour = result.Detour || !result.Exists || !result.Mode.IsDir()
			result.Left = append(result.Left, result.Path)
			result.Path = filepath.Dir(result.Path)
			result.Mode, result.Exists = fs.ModeDir, true
			if e := r.Entry(result.Path); e.Err != nil {
				result.Exists = false
			}
			continue
		}
		next := strings.TrimSuffix(result.Path, "/") + "/" + name
		if !result.Exists {
			// Everything below a missing directory is missing.
			result.Path = next
			continue
		}
		if step != nil {
			step(result.Path, name)
		}
		e := r.Entry(next)
		if e.Err != nil {
			result.Path, result.Exists = next, false
			if !textfile.Missing(e.Err) && result.Err == nil {
				result.Err = e.Err
			}
			continue
		}
		if e.Mode&fs.ModeSymlink == 0 {
			result.Path, result.Mode, result.Exists = next, e.Mode, true
			continue
		}
		if len(result.Links) == maxLinks {
			result.Err = ErrTooManyLinks
			return result
		}
		result.Links = append(result.Links, Link{Path: next, Dir: result.Path})
		if filepath.IsAbs(e.Target) {
			result.Path = "/"
		}
		rest = e.Target + "/" + rest
	}
	return result
}
