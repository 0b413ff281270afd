package denials

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitchange"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/gitwrite"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// git changes a configuration by writing NAME.lock and renaming it to NAME, which
// is a mount. The observer answers that rename itself: it writes the real file if
// the change is harmless. See docs/design/git-config.md.

// GitConfigs lists the files of a policy whose changes are judged by what they
// mean. Those that are symlinks stay as they are.
func GitConfigs(p *policy.Policy) []string {
	var list []string
	for _, one := range p.Protected {
		if one.GitConfig && fsguard.Plain(one.Path) == nil {
			list = append(list, one.Path)
		}
	}
	return list
}

// gitRenames are the calls with which a lock takes the place of a file.
var gitRenames = []string{"rename", "renameat", "renameat2"}

// gitRename is such a call.
type gitRename struct {
	call         *notify.Call
	root         int
	lock, config *location
}

func (r *gitRename) close() {
	for _, loc := range []*location{r.lock, r.config} {
		if loc != nil {
			loc.close()
		}
	}
}

// changeGit answers a rename of a configuration's lock, and returns false if the
// call is none.
func (o *Observer) changeGit(call *notify.Call, root int, name string, list []pathArg) bool {
	if len(o.options.GitConfigs) == 0 || !o.started.Load() || !slices.Contains(gitRenames, name) ||
		name == "renameat2" && uint32(call.Args[4]) != 0 {
		return false
	}
	r := &gitRename{call: call, root: root}
	defer r.close()
	if r.config = o.gitLocation(call, root, list[1]); r.config == nil ||
		!slices.Contains(o.options.GitConfigs, r.config.path) || r.config.kind() != unix.S_IFREG {
		return false
	}
	if r.lock = o.gitLocation(call, root, list[0]); r.lock == nil || r.lock.path != r.config.path+".lock" ||
		!o.options.Policy.At(r.lock.path).Has(policy.Read|policy.Write) {
		return false
	}
	o.answerGit(r)
	return true
}

// gitLocation is where a path of a call leads if its last name is that of a
// configuration or of its lock; nil otherwise.
func (o *Observer) gitLocation(call *notify.Call, root int, u pathArg) *location {
	text, err := call.Text(call.Args[u.path])
	if err != nil || !strings.HasPrefix(path.Base(text), "config") {
		return nil
	}
	dir := unix.AT_FDCWD
	if u.dir != workDir {
		dir = int(int32(call.Args[u.dir]))
	}
	loc, err := locate(call, root, dir, text, false)
	if err != nil {
		return nil
	}
	if !loc.exists() {
		loc.close()
		return nil
	}
	return loc
}

// answerGit judges a change, carries it out or refuses it.
func (o *Observer) answerGit(r *gitRename) {
	change, err := o.readGit(r)
	if err == nil && len(change.verdict.Refused) > 0 {
		if !o.askGit(r, change) {
			return
		}
	}
	if err == nil {
		err = o.writeGit(r, change)
	}
	switch {
	case errors.Is(err, notify.ErrGone):
		return
	case err != nil:
		o.refuseGit(r, platform.Denial{Detail: "settings: " + err.Error()}, err)
		return
	}
	if o.options.Configured != nil {
		o.options.Configured(r.config.path, change.verdict.Changed)
	}
	r.call.Succeed()
}

// gitChange is a configuration before and after a change.
type gitChange struct {
	before, after []byte
	verdict       gitchange.Verdict
}

func (o *Observer) readGit(r *gitRename) (c gitChange, err error) {
	if err := fsguard.Answers(r.config.path); err != nil {
		return c, err
	}
	read := func(loc *location) ([]byte, error) {
		if loc.kind() != unix.S_IFREG { // a FIFO would wait, and a symlink leads elsewhere
			return nil, errLock
		}
		fd, err := r.open(loc.fd, unix.O_RDONLY)
		if err != nil {
			return nil, err
		}
		defer unix.Close(fd)
		return gitwrite.Read(fd)
	}
	if c.before, err = read(r.config); err != nil {
		return c, err
	}
	if c.after, err = read(r.lock); err != nil {
		return c, err
	}
	c.verdict, err = gitwrite.Judge(c.before, c.after, gitchange.Facts{
		Added: func(e gitconfig.Entry) bool { return gitAdded.has(r.config.path, e) },
		Held: func(branch string) ([]gitconfig.Entry, bool) {
			return gitAdded.heldBy(r.config.path, branch)
		},
		Unwritable: o.unwritable,
	})
	return c, err
}

var errLock = errors.New("the new file is no plain file")

// open opens a file that an O_PATH descriptor refers to, as the caller.
func (r *gitRename) open(fd, flags int) (opened int, err error) {
	caller, err := r.call.Identity()
	if err != nil {
		return -1, err
	}
	var failed error
	err = caller.As(func() {
		// A lease of another process must not hold this one up.
		opened, failed = unix.Open(fdPath(fd), flags|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
	return opened, errors.Join(err, failed)
}

// askGit asks the user about a change that is refused. If the answer is no, or
// nobody is asked, it answers the call.
func (o *Observer) askGit(r *gitRename, c gitChange) bool {
	first := c.verdict.Refused[0]
	detail := platform.Denial{Detail: first.Line, Whole: first.Whole, Command: first.Command}
	// A question is about one thing, and shows all of it.
	if o.options.Ask == nil || len(c.verdict.Refused) > 1 || first.Change == "" || first.Whole == "" {
		o.refuseGit(r, detail, unix.EPERM)
		return false
	}
	denial := o.describeGit(r, detail)
	allowed, answered := o.wait(r.call, denial, first.Change)
	if !allowed && !answered {
		o.refuseGit(r, detail, unix.EPERM)
	}
	return allowed
}

// writeGit writes the file in the sidecar's own mounts, and removes the lock.
func (o *Observer) writeGit(r *gitRename, c gitChange) error {
	own, err := outside(r.config.fd, r.config.path)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	fd, err := r.open(own, unix.O_RDWR)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if !r.call.Valid() {
		return notify.ErrGone
	}
	gitAdded.hold(r.config.path, c.verdict.Moved)
	if err := gitwrite.Replace(fd, c.before, c.after); err != nil {
		return err
	}
	if len(c.verdict.Refused) == 0 {
		gitAdded.add(r.config.path, c.verdict.Added)
	}
	r.removeLock()
	return nil
}

// removeLock removes the lock, if it is still there. A file of another directory
// is left alone: the lock has one name only.
func (r *gitRename) removeLock() {
	caller, err := r.call.Identity()
	if err != nil || r.lock.openParent(r.root) != nil {
		return
	}
	var now, was unix.Stat_t
	name := path.Base(r.lock.path)
	if unix.Fstatat(r.lock.parent, name, &now, unix.AT_SYMLINK_NOFOLLOW) != nil || unix.Fstat(r.lock.fd, &was) != nil ||
		now.Dev != was.Dev || now.Ino != was.Ino {
		return
	}
	_ = caller.As(func() { _ = unix.Unlinkat(r.lock.parent, name, 0) })
}

// describeGit names the caller and the file.
func (o *Observer) describeGit(r *gitRename, detail platform.Denial) platform.Denial {
	denial := o.describe(r.call, refusal{access: platform.RefusedProtected, target: r.config.path})
	denial.Detail, denial.Whole, denial.Command = detail.Detail, detail.Whole, detail.Command
	return denial
}

// refuseGit reports a change and refuses it.
func (o *Observer) refuseGit(r *gitRename, detail platform.Denial, err error) {
	o.options.Report(o.describeGit(r, detail))
	errno := errnoOf(err)
	if errno == unix.EACCES {
		errno = unix.EPERM
	}
	r.call.Fail(errno)
}

// unwritable reports whether a directory exists at a path, and no session can
// write to it, or put another one there.
func (o *Observer) unwritable(dir string) bool {
	p := o.options.Policy
	for _, temporary := range append([]string{"/tmp", "/var/tmp", "/dev/shm", "/proc"}, temporaryPaths(p)...) {
		if policy.Contains(temporary, dir) {
			return false
		}
	}
	if _, hidden := p.HiddenAt(dir); hidden {
		return false
	}
	for _, rule := range p.Rules {
		if rule.Access.Has(policy.Write) && (policy.Contains(rule.Path, dir) || policy.Contains(dir, rule.Path)) {
			return false
		}
	}
	if fsguard.Plain(dir) != nil { // a symlink may lead elsewhere later
		return false
	}
	info, err := fsguard.Lstat(dir)
	return err == nil && info.Mode()&fs.ModeType == fs.ModeDir
}

func temporaryPaths(p *policy.Policy) []string {
	var list []string
	for _, one := range p.Temporary {
		list = append(list, one.Path)
	}
	return list
}

// additions are what sessions of this sidecar have added to each file. They may
// remove it again.
type additions struct {
	mu    sync.Mutex // guards the fields below
	files map[string]map[gitconfig.Entry]bool
	// held are the branches that sessions have renamed, by file and name. A name
	// stays, as a branch that is made anew under it is judged by it.
	held map[string]map[string][]gitconfig.Entry
}

// maxAdditions bounds the entries of a file, and the files.
const maxAdditions = 1024

var gitAdded = additions{
	files: map[string]map[gitconfig.Entry]bool{}, held: map[string]map[string][]gitconfig.Entry{},
}

// heldBy is gitchange.Facts.Held for a file. If there are too many branches to
// know, each counts as one that had no settings.
func (a *additions) heldBy(file, branch string) ([]gitconfig.Entry, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	settings, held := a.held[file][branch]
	return settings, held || len(a.held) > maxAdditions || len(a.held[file]) > maxAdditions
}

// hold remembers branches that were renamed in a file.
func (a *additions) hold(file string, moved map[string][]gitconfig.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for branch, settings := range moved {
		if a.held[file] == nil {
			a.held[file] = map[string][]gitconfig.Entry{}
		}
		if _, held := a.held[file][branch]; !held {
			a.held[file][branch] = settings
		}
	}
}

func (a *additions) has(file string, e gitconfig.Entry) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.files[file][e]
}

func (a *additions) add(file string, entries []gitconfig.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known := a.files[file]
	if known == nil {
		known = map[gitconfig.Entry]bool{}
		withRoom(a.files)[file] = known
	}
	for _, e := range entries {
		if len(known) < maxAdditions {
			known[e] = true
		}
	}
}
