package linux

import (
	"errors"
	"fmt"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
)

// abiVersionOf asks the kernel. The error says why there is no Landlock in
// words a user can act on.
func abiVersionOf() (int, error) {
	version, err := landlock.LandlockGetABIVersion()
	switch {
	case errors.Is(err, unix.ENOSYS):
		return 0, errors.New("landlock is not built into this kernel, or a filter hides it")
	case errors.Is(err, unix.EOPNOTSUPP):
		return 0, errors.New("landlock is switched off on this machine")
	case err != nil:
		return 0, fmt.Errorf("ask for landlock's version: %w", err)
	}
	return version, nil
}

// fixedErrata asks the kernel; see unfixedErrata.
func fixedErrata() int {
	fixed, err := landlock.LandlockGetErrata()
	if err != nil {
		return 0
	}
	return fixed
}

// enforce puts the ruleset in force on the calling thread for good. The thread
// must be locked, and must have no_new_privs set. It returns the paths that
// could not be granted.
func enforce(r Ruleset, ownTerminals bool) ([]platform.Missing, error) {
	fd, err := landlock.LandlockCreateRuleset(&landlock.RulesetAttr{HandledAccessFS: uint64(r.FS),
		Scoped: uint64(r.Scoped)}, 0)
	if err != nil {
		return nil, fmt.Errorf("create landlock ruleset: %w", err)
	}
	defer unix.Close(fd)
	var missing []platform.Missing
	for _, rule := range r.Rules {
		err := addRule(fd, rule)
		if err == nil {
			continue
		}
		if rule.Required || !unreachable(err) {
			return nil, fmt.Errorf("grant %s: %w", rule.Path, err)
		}
		missing = append(missing, platform.Missing{Path: string(rule.Path), Reason: err.Error()})
	}
	if r.Requested.Terminals {
		if err := addTerminals(fd, r.FS, ownTerminals); err != nil {
			return nil, err
		}
	}
	if err := landlock.LandlockRestrictSelf(fd, r.logging()); err != nil {
		return nil, fmt.Errorf("enforce landlock ruleset: %w", err)
	}
	return missing, nil
}

// addTerminals grants the terminals that are the session's own: all of its
// devpts where it has one, and in any case those that it runs on, by their
// descriptors, because no other path leads to a caller's terminal, and on the
// shared devpts a path could lead to another's.
func addTerminals(ruleset int, handled FSAccess, all bool) error {
	access := (fsRead | fsWrite | fsDevice) & handled
	if all {
		if err := addRule(ruleset, Rule{Path: namespace.TerminalDir, Access: access}); err != nil {
			return fmt.Errorf("grant %s: %w", namespace.TerminalDir, err)
		}
	}
	for fd, name := range namespace.StreamNames {
		if !namespace.IsTerminal(fd) {
			continue
		}
		err := landlock.LandlockAddPathBeneathRule(ruleset,
			&landlock.PathBeneathAttr{AllowedAccess: uint64(access & fsFile), ParentFd: fd}, 0)
		if err != nil {
			return fmt.Errorf("grant terminal that is %s: %w", name, err)
		}
	}
	return nil
}

// unreachable are the errors of a path that is not there for us; a grant of it
// would open nothing.
func unreachable(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.ENAMETOOLONG)
}

func addRule(ruleset int, rule Rule) error {
	// The policy's paths are real paths. A component that has become a symlink
	// since was put there to move the grant.
	fd, err := unix.Openat2(unix.AT_FDCWD, string(rule.Path), &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// The kind is asked of the descriptor, not of the path: between two looks
	// at a path it may change.
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
	return landlock.LandlockAddPathBeneathRule(ruleset,
		&landlock.PathBeneathAttr{AllowedAccess: uint64(access), ParentFd: fd}, 0)
}

// fsFile are the rights that mean something on a file; the kernel refuses a
// rule that gives a file any other (EINVAL).
const fsFile = FSAccess(landlock.AccessFSExecute | landlock.AccessFSWriteFile | landlock.AccessFSReadFile | landlock.AccessFSTruncate |
	landlock.AccessFSIoctlDev | landlock.AccessFSResolveUnix)
