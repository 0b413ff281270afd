//go:build unix

package platformtest

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// refusedAs returns the error with which a session with these rules is denied an
// act. 0 stands for any for which Result.Refused is true. fileTree says that what
// is not granted for writing is mounted read-only, and that each grant is a
// mount of its own. Symlinks are followed as they are now.
func refusedAs(act Act, rules []policy.Rule, fileTree bool) unix.Errno {
	// grantOf is the topmost writable rule above a path, and so its mount.
	grantOf := func(path string) (top string) {
		for _, rule := range rules {
			if rule.Access.Has(policy.Write) && policy.Contains(rule.Path, path) &&
				(top == "" || len(rule.Path) < len(top)) {
				top = rule.Path
			}
		}
		return top
	}
	switch {
	case !fileTree:
		return 0
	case act.Verb == Write, act.Verb == Truncate:
		if path, err := filepath.EvalSymlinks(act.Path); err != nil || grantOf(path) != "" {
			return 0
		}
		return unix.EROFS
	case act.Verb == Create, act.Verb == MakeDir, act.Verb == Symlink, act.Verb == Remove:
		if dir, err := filepath.EvalSymlinks(filepath.Dir(act.Path)); err != nil || grantOf(dir) != "" {
			return 0
		}
		return unix.EROFS
	case act.Verb == Rename, act.Verb == Link:
		from, to := grantOf(filepath.Dir(act.Path)), grantOf(filepath.Dir(act.Target))
		switch {
		case to == "" && (from == "" || act.Verb == Link):
			return unix.EROFS
		case from != to:
			return unix.EXDEV
		}
	}
	return 0
}

// refused reports whether an act was denied with an error of refusedAs. If
// Landlock knows no right to truncate (before ABI 3), a filter refuses
// truncate(2) before the mount does.
func refused(act Act, result Result, want unix.Errno) bool {
	return result.Errno == want || (want == 0 || act.Verb == Truncate) && result.Refused()
}
