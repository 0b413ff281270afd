package stage

import (
	"errors"
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
)

// LandlockABI returns the ABI version of the kernel's Landlock. If there is
// none, the error says why, in words that a user can act on.
func LandlockABI() (int, error) {
	version, err := ll.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.ENOSYS):
		return 0, errors.New("this kernel has no Landlock, or a filter of this process hides it")
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, errors.New("the kernel's Landlock is switched off")
	case err != nil:
		return 0, fmt.Errorf("ask the kernel for its version of Landlock: %w", err)
	}
	return version, nil
}

// enforce puts the ruleset in force on the calling thread, for good. The thread
// must be locked and must have no_new_privs set. It returns the paths that could
// not be granted. ownTerminals is true if /dev/pts is the session's own.
func enforce(r Ruleset, ownTerminals bool) ([]handshake.Missing, error) {
	fd, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{
		HandledAccessFS:  uint64(r.FS),
		HandledAccessNet: uint64(r.handledNet()),
		Scoped:           uint64(r.Scoped),
	}, 0)
	if err != nil {
		return nil, fmt.Errorf("create landlock ruleset: %w", err)
	}
	defer unix.Close(fd)
	var missing []handshake.Missing
	for _, rule := range r.Rules {
		err := addRule(fd, rule)
		if err == nil {
			continue
		}
		if rule.Required || !unreachable(err) {
			return nil, fmt.Errorf("grant %s: %w", rule.Path, err)
		}
		missing = append(missing, handshake.Missing{Path: string(rule.Path), Reason: WhyMissing(err)})
	}
	if r.Requested.Terminals {
		if err := addTerminals(fd, r.FS, ownTerminals); err != nil {
			return nil, err
		}
	}
	if err := addStreams(fd, r.FS); err != nil {
		return nil, err
	}
	if r.Shared {
		if err := addSelf(fd, r.FS); err != nil {
			return nil, err
		}
	}
	if err := ll.LandlockRestrictSelf(fd, r.silence()); err != nil {
		return nil, fmt.Errorf("enforce landlock ruleset: %w", err)
	}
	return missing, nil
}

// handledNet is what the ruleset governs of the network. No rule grants any of
// it: the sidecar connects the sockets of a session that shares the machine's
// network.
func (r Ruleset) handledNet() landlock.AccessNetSet {
	if !r.Filtering.Shared {
		return 0
	}
	return netTCP
}

// addTerminals grants the session's own terminals: all of /dev/pts if that is
// its own, and in any case the terminals among its standard streams. Those are
// granted by their descriptors: a caller's terminal may have no path inside, and
// on the shared devpts a path can lead to another terminal by then.
func addTerminals(ruleset int, handled landlock.AccessFSSet, all bool) error {
	access := (FSRead | FSWrite | fsDevice) & handled
	if all {
		if err := addRule(ruleset, Rule{Path: namespace.TerminalDir, Access: access}); err != nil {
			return fmt.Errorf("grant %s: %w", namespace.TerminalDir, err)
		}
	}
	for fd, name := range namespace.StreamNames {
		if !namespace.IsTerminal(fd) {
			continue
		}
		err := ll.LandlockAddPathBeneathRule(ruleset,
			&ll.PathBeneathAttr{AllowedAccess: uint64(access & fsFile), ParentFd: fd}, 0)
		if err != nil {
			return fmt.Errorf("grant terminal that is %s: %w", name, err)
		}
	}
	return nil
}

// addStreams lets the session open the files again that its standard streams
// are: "tee /dev/stderr" does, by /proc. It may do no more by that than by the
// descriptor: what is open for writing can be truncated, and loses O_APPEND by
// fcntl(2). What is open for reading alone is not opened for writing.
func addStreams(ruleset int, handled landlock.AccessFSSet) error {
	for fd, name := range namespace.StreamNames {
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) != nil {
			continue // not open
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		link, linkErr := os.Readlink(linkOf(fd))
		kind := stat.Mode & unix.S_IFMT
		if err != nil || linkErr != nil || flags&unix.O_PATH != 0 || kind != unix.S_IFREG && kind != unix.S_IFIFO ||
			isPipe(fd) || isKernels(fd, link) {
			continue
		}
		var access landlock.AccessFSSet
		if mode := flags & unix.O_ACCMODE; mode != unix.O_WRONLY {
			access |= FSRead
		}
		if mode := flags & unix.O_ACCMODE; mode != unix.O_RDONLY {
			access |= FSWrite
		}
		err = ll.LandlockAddPathBeneathRule(ruleset,
			&ll.PathBeneathAttr{AllowedAccess: uint64(access & handled & fsFile), ParentFd: fd}, 0)
		if err != nil && !errors.Is(err, unix.EBADFD) { // a file without a place, such as one of memfd_create(2)
			return fmt.Errorf("grant the file that is %s: %w", name, err)
		}
	}
	return nil
}

// addSelf grants the execution of this very program, by its file: it may have no
// path inside.
func addSelf(ruleset int, handled landlock.AccessFSSet) error {
	self, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("grant this program: %w", err)
	}
	defer unix.Close(self)
	access := (FSRead | FSExecute) & handled & fsFile
	err = ll.LandlockAddPathBeneathRule(ruleset,
		&ll.PathBeneathAttr{AllowedAccess: uint64(access), ParentFd: self}, 0)
	if err != nil {
		return fmt.Errorf("grant this program: %w", err)
	}
	return nil
}

// unreachable reports whether an error means that a path does not exist for
// this process, or that another file is there than the one that was checked. A
// grant of such a path would have no effect, or a wrong one.
func unreachable(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, errAnother)
}

var errAnother = errors.New("another file was there than the one that was checked")

// WhyMissing says why a grant has no effect, for people. It does not name the
// path.
func WhyMissing(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return "it was not there at the start"
	case errors.Is(err, unix.ELOOP):
		return "a symlink was on the way to it"
	case errors.Is(err, unix.EACCES):
		return "this user may not pass the directories above it"
	}
	return err.Error()
}

func addRule(ruleset int, rule Rule) error {
	fd, err := rule.open()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// Fstat, not Stat: the path may lead to another file by now.
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	access := rule.Access
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fsFile
	}
	if access == 0 {
		return nil
	}
	return ll.LandlockAddPathBeneathRule(ruleset,
		&ll.PathBeneathAttr{AllowedAccess: uint64(access), ParentFd: fd}, 0)
}

// open opens the file that the rule is for.
func (r Rule) open() (int, error) {
	// The policy has real paths. If a component has become a symlink since then,
	// an attacker may want to move the grant to another file.
	fd, err := unix.Openat2(unix.AT_FDCWD, string(r.Path), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil || r.Checked == nil {
		return fd, err
	}
	found, err := IdentityOf(fd)
	if err == nil && found != *r.Checked {
		err = errAnother
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// IdentityOf returns the identity of an open file. It is the same in all mount
// namespaces.
func IdentityOf(fd int) (Identity, error) {
	var stat unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT, unix.STATX_INO|unix.STATX_BTIME, &stat)
	if err != nil {
		return Identity{}, fmt.Errorf("identify file: %w", err)
	}
	id := Identity{Device: unix.Mkdev(stat.Dev_major, stat.Dev_minor), Inode: stat.Ino}
	if stat.Mask&unix.STATX_BTIME != 0 {
		id.Born = stat.Btime.Sec*1e9 + int64(stat.Btime.Nsec)
	}
	return id, nil
}
