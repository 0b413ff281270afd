package denials

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Nothing can be mounted on a protected path that does not exist. The observer
// refuses the calls that would create it. A program that changes a path while it
// is checked can still create the file, which the tripwire reports. See
// docs/design/protected-names.md.

// missing are the protected names that did not exist when the session started.
type missing struct {
	// names are the directories of exact names, and patterns those of names with
	// a *, by the last name.
	names, patterns map[string][]string
	// anywhere are the patterns that count at any depth.
	anywhere []policy.Protected
	// ways are the missing directories that lead to such a name, by their last
	// name. Nothing may be renamed to one, or a directory could be filled
	// elsewhere first. Directories that exist are mounts, which nothing can move;
	// a file or a symlink in the place of one is not.
	ways map[string][]string
	// affixes are the names and patterns, for Decider.
	affixes []affixes
}

// lastMissing is that of the last session. Most sessions have the same.
var lastMissing atomic.Pointer[missing]

// shared returns the last session's, if that is the same.
func (m *missing) shared() *missing {
	same := func(a, b map[string][]string) bool { return maps.EqualFunc(a, b, slices.Equal) }
	last := lastMissing.Load()
	if last != nil && same(last.names, m.names) && same(last.patterns, m.patterns) && same(last.ways, m.ways) &&
		slices.Equal(last.anywhere, m.anywhere) {
		return last
	}
	lastMissing.Store(m)
	return m
}

// Missing lists the protected paths that a session could create.
func Missing(p *policy.Policy) []policy.Protected {
	var list []policy.Protected
	names := fsguard.NewNames()
	for _, one := range p.Protected {
		if one.Creatable {
			continue
		}
		if one.Pattern || names.Lacks(one.Path) {
			list = append(list, one)
			continue
		}
		// A file in the place of its directory can be removed, and so can a symlink.
		info, err := fsguard.Lstat(one.Path)
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			list = append(list, one)
		}
	}
	return list
}

func missingNames(list []policy.Protected, p *policy.Policy) *missing {
	m := &missing{names: map[string][]string{}, patterns: map[string][]string{}, ways: map[string][]string{}}
	add := func(to map[string][]string, path string) {
		dir, name := filepath.Dir(path), filepath.Base(path)
		to[name] = append(to[name], dir)
	}
	index := policy.NewIndex(p)
	known, isWay := map[policy.Protected]bool{}, map[string]bool{}
	for _, one := range list {
		name := policy.Protected{Path: one.Path, Pattern: one.Pattern}
		switch {
		case known[name]:
			continue
		case one.Pattern:
			if _, _, is := one.Anywhere(); is {
				m.anywhere, known[name] = append(m.anywhere, name), true
				continue
			}
			add(m.patterns, one.Path)
		default:
			add(m.names, one.Path)
		}
		known[name] = true
		for dir := filepath.Dir(one.Path); dir != "/" && dir != p.Project && !isWay[dir]; dir = filepath.Dir(dir) {
			isWay[dir] = true // or is none, with all above it
			info, err := fsguard.Lstat(dir)
			replaceable := err != nil || !info.IsDir()
			if replaceable && index.Writable(filepath.Dir(dir)) {
				add(m.ways, dir)
			}
		}
	}
	for name := range m.names {
		m.affixes = append(m.affixes, affixes{before: name})
	}
	for pattern := range m.patterns {
		m.affixes = append(m.affixes, affixesOf(pattern))
	}
	for _, one := range m.anywhere {
		_, pattern, _ := one.Anywhere()
		m.affixes = append(m.affixes, affixesOf(pattern))
	}
	return m.shared()
}

// affixesOf are those of a name that may contain *.
func affixesOf(pattern string) affixes {
	first, _, wild := strings.Cut(pattern, "*")
	if !wild {
		return affixes{before: pattern}
	}
	return affixes{first, pattern[strings.LastIndexByte(pattern, '*')+1:], true}
}

// empty reports whether every name may be created.
func (m *missing) empty() bool { return len(m.names)+len(m.patterns)+len(m.anywhere) == 0 }

// below lists the directories below which a name must not be created.
func (m *missing) below(name string) (list []string) {
	for i := range m.anywhere {
		if dir, pattern, _ := m.anywhere[i].Anywhere(); policy.MatchName(pattern, name) {
			list = append(list, dir)
		}
	}
	return list
}

// free reports whether no name is refused for itself.
func (o *Observer) free() bool { return o.missing.empty() && len(o.options.Policy.GitDirs) == 0 }

// dirs lists the directories in which a name must not be created. way says that
// the call can put a whole directory there.
func (m *missing) dirs(name string, way bool) []string {
	list := m.names[name]
	for pattern, dirs := range m.patterns {
		if policy.MatchName(pattern, name) {
			list = slices.Concat(list, dirs)
		}
	}
	if way {
		list = slices.Concat(list, m.ways[name])
	}
	return list
}

// concerns reports whether a path may be one that must not be created.
func (m *missing) concerns(w request, name string) bool {
	base := filepath.Base(name)
	return w.makes() && len(m.dirs(base, true))+len(m.below(base)) > 0 || w.op == opRemove && len(m.ways[base]) > 0
}

// refuseMissing refuses a call that would create a protected path, and reports
// it. It returns false if the call is none.
func (o *Observer) refuseMissing(call *notify.Call, root int, ownRoot bool, name string, list []pathArg) bool {
	if o.missing.empty() || !o.started.Load() {
		return false
	}
	for _, u := range list {
		c, ok, err := o.creation(call, name, u)
		if errors.Is(err, unix.EFAULT) {
			// The kernel may be able to read what this process cannot, such as
			// memory of memfd_secret(2).
			call.Fail(unix.EFAULT)
			return true
		}
		if !ok {
			continue
		}
		c.file = len(o.missing.ways[filepath.Base(c.text)]) > 0 && o.movesFile(call, root, name, list)
		switch target, err := o.createsMissing(call, root, c); {
		case target != "":
			o.refuseCreated(call, target)
			return true
		case err != nil:
			// A hidden directory is one that nobody can enter. The report names it.
			o.reportFirst(call, root, ownRoot, name, list)
			call.Fail(errnoOf(err))
			return true
		}
	}
	return false
}

// reportFirst reports the first access of a call that the policy refuses. The
// caller refuses the call for another reason.
func (o *Observer) reportFirst(call *notify.Call, root int, ownRoot bool, name string, list []pathArg) {
	for _, u := range list {
		if f, _ := o.inspect(call, root, ownRoot, name, u); f != nil {
			f.loc.close()
			o.report(call, f.refusal)
			return
		}
	}
}

// refuseCreated refuses a call that creates a protected path, and reports it.
func (o *Observer) refuseCreated(call *notify.Call, target string) {
	o.report(call, refusal{access: platform.RefusedCreate, target: target})
	call.Fail(unix.EPERM)
}

// movesFile reports whether a call renames a regular file, which leads nowhere:
// programs replace files in this way, as kconfig does with .config.
func (o *Observer) movesFile(call *notify.Call, root int, name string, list []pathArg) bool {
	if !slices.Contains(gitRenames, name) || name == "renameat2" && call.Args[4]&unix.RENAME_EXCHANGE != 0 {
		return false
	}
	from := creation{dir: unix.AT_FDCWD}
	for _, u := range list {
		if u.op != opRemove {
			continue
		}
		text, err := call.Text(call.Args[u.path])
		if err != nil || text == "" || fsguard.Answers(text) != nil {
			return false
		}
		if from.text = text; u.dir != workDir {
			from.dir = int(int32(call.Args[u.dir]))
		}
	}
	at := walk{call: call, root: root, fd: -1}
	defer at.close()
	if from.text == "" || at.start(from) != nil || at.follow(from.text, false) != nil || at.name == "" {
		return false
	}
	var stat unix.Stat_t
	err := unix.Fstatat(at.fd, at.name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && stat.Mode&unix.S_IFMT == unix.S_IFREG
}

// mayCreate reports whether a call creates a name, or cannot be read.
func (o *Observer) mayCreate(call *notify.Call, name string, list []pathArg) bool {
	return slices.ContainsFunc(list, func(u pathArg) bool {
		_, ok, err := o.creation(call, name, u)
		return ok || err != nil
	})
}

// refuseUnrooted refuses a call that creates a name if the root directory of its
// caller cannot be opened, so that nobody can follow the path. The exception is a
// process without namespaces that hides itself; see
// docs/design/protected-names.md.
func (o *Observer) refuseUnrooted(call *notify.Call, err error) bool {
	if o.free() || !o.started.Load() || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return false
	}
	call.Fail(errnoOf(err))
	return true
}

// refuseCreation refuses a call that creates a protected path, and reports it. A
// call whose path cannot be followed gets the error that says why. It returns
// false if the call may create the name.
func (o *Observer) refuseCreation(call *notify.Call, root int, c creation) bool {
	target, err := o.createsMissing(call, root, c)
	switch {
	case target != "":
		o.refuseCreated(call, target)
	case err != nil:
		call.Fail(errnoOf(err))
	default:
		return false
	}
	return true
}

// creation is a name that a call may create.
type creation struct {
	dir    int // a descriptor of the caller's, or AT_FDCWD
	text   string
	follow bool
	// inRoot makes dir the root of the lookup (RESOLVE_IN_ROOT).
	inRoot bool
	// way says that a directory with content, or a symlink, may come there.
	way bool
	// file says that it is a regular file, which is no way to another name.
	file bool
}

// creation reads a path argument of a call if the call can create that name. The
// error says that the caller's memory cannot be read.
func (o *Observer) creation(call *notify.Call, name string, u pathArg) (c creation, ok bool, err error) {
	exchange := name == "renameat2" && call.Args[4]&unix.RENAME_EXCHANGE != 0
	if u.op != opCreate && u.op != opLink && u.op != opOpen && (!exchange || u.op != opRemove) {
		return c, false, nil
	}
	var flags openFlags
	if name == "openat2" {
		var how [24]byte // struct open_how
		if err := call.Read(call.Args[2], how[:]); err != nil {
			return c, false, err
		}
		flags = openFlags(binary.NativeEndian.Uint64(how[:]))
		c.inRoot = binary.NativeEndian.Uint64(how[16:])&unix.RESOLVE_IN_ROOT != 0
	} else if flags, _, err = flagsOf(call, name, u); err != nil {
		return c, false, err
	}
	w := newRequest(u.op, flags)
	if exchange {
		w.op = opLink
	}
	if !w.makes() {
		return c, false, nil
	}
	text, err := call.Text(call.Args[u.path])
	if err != nil || text == "" {
		return c, false, err
	}
	c.dir, c.text, c.follow = unix.AT_FDCWD, text, w.follow
	if u.dir != workDir {
		c.dir = int(int32(call.Args[u.dir]))
	}
	c.way = w.op == opLink || slices.Contains(linkMoving, name) // a hard link may be one to a symlink
	return c, true, nil
}

// createsMissing returns the protected path that a call creates; "" if there is
// none. It returns an error if nobody knows which name the call creates.
func (o *Observer) createsMissing(call *notify.Call, root int, c creation) (target string, err error) {
	if fsguard.Answers(c.text) != nil {
		// Nobody can follow it without waiting, so its last name decides.
		base := filepath.Base(c.text)
		if dirs := slices.Concat(o.missing.dirs(base, c.way), o.missing.below(base)); len(dirs) > 0 {
			return dirs[0] + "/" + base, nil
		}
		return "", nil
	}
	at := walk{call: call, root: root, fd: -1}
	defer at.close()
	err = at.start(c)
	if err == nil {
		err = at.follow(c.text, c.follow)
	}
	base := at.name
	if base == "" {
		base = filepath.Base(c.text)
	}
	dirs, below := o.missing.dirs(base, c.way && !c.file), o.missing.below(base)
	switch {
	case nothingThere(err):
		return "", nil // the kernel answers the same
	case err != nil && len(dirs)+len(below) > 0:
		return slices.Concat(dirs, below)[0] + "/" + base, nil // nobody knows where it leads
	case err != nil && c.follow:
		return "", err // a symlink may lead to any name
	case len(dirs)+len(below) == 0:
		return "", nil
	}
	var stat unix.Stat_t
	if unix.Fstatat(at.fd, base, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil && !c.way {
		return "", nil // it exists
	}
	for _, dir := range dirs {
		if o.mayBeDirectory(dir, at.fd) {
			return dir + "/" + base, nil
		}
	}
	if len(below) == 0 {
		return "", nil
	}
	at.name = base
	return o.missing.anywhereAt(&at)
}

// anywhereAt returns the path of a name that must not be created at any depth; ""
// if it may be created where it is. It returns an error if nobody knows where
// that is.
func (m *missing) anywhereAt(at *walk) (string, error) {
	dir, err := os.Readlink(fdPath(at.fd))
	if err != nil {
		return "", unix.EPERM
	}
	path := filepath.Join(dir, at.name)
	for i := range m.anywhere {
		if m.anywhere[i].Covers(path) {
			return path, nil
		}
	}
	return "", nil
}

// mayBeDirectory reports whether a path of the session leads to an open
// directory, or cannot be followed. A program that keeps the directory open can
// take away the right to reach it from above.
func (o *Observer) mayBeDirectory(path string, fd int) bool {
	o.rootMu.RLock()
	defer o.rootMu.RUnlock()
	if o.rootFD < 0 {
		return true // only callers with another root so far, where the path may lead elsewhere
	}
	known, err := openPath(o.rootFD, path, true)
	if err != nil {
		return !nothingThere(err)
	}
	defer unix.Close(known)
	same, err := sameFile(known, fd)
	return same || err != nil
}

// nothingThere reports whether an error says that a path leads nowhere.
func nothingThere(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

func sameFile(a, b int) (bool, error) {
	var x, y unix.Stat_t
	err := errors.Join(unix.Fstat(a, &x), unix.Fstat(b, &y))
	return err == nil && x.Ino == y.Ino && x.Dev == y.Dev, err
}
