package printed

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Judge asks a session's policy about what a line says. A program can print
// anything; it causes a report only about what its session really is refused.
type Judge struct {
	Policy *policy.Policy
	// Home is the session's home directory, for paths that begin with "~/"; ""
	// if there is none.
	Home string
}

// Judge returns the denial that a line tells of, or false if the policy refuses
// nothing that the line names. dir is what relative paths start from; "" if it
// is not known.
func (j *Judge) Judge(said Said, dir string) (platform.Denial, bool) {
	denial := platform.Denial{Count: 1, Source: platform.SourceOutput}
	if said.Word == Unreachable {
		denial.Access, denial.Target = platform.RefusedConnect, said.Address
		// If hosts are allowed one by one, who decides about them reports it.
		network := j.Policy.Network
		return denial, said.Address != "" && !network.Allowed && !network.ByHost()
	}
	for _, path := range said.Paths {
		target, found := j.locate(path, dir)
		if !found {
			continue
		}
		var refused bool
		denial.Target = target.path
		denial.Access, refused = j.refused(said, target)
		return denial, refused
	}
	return denial, false
}

// target is where a path of a line leads.
type target struct {
	path string      // real
	info fs.FileInfo // nil if there is no such file
}

// elsewhere are directories in which a session sees other files than the
// sidecar.
var elsewhere = []string{"/proc", "/dev"}

// locate follows a path. A path that may be cut or too long must exist. Any
// other must at least have its directory.
func (j *Judge) locate(p Path, dir string) (target, bool) {
	path := j.absolute(p.Name, dir)
	if path == "" {
		return target{}, false
	}
	real, err := fsguard.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && p.Sure {
		dir, err := fsguard.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return target{}, false
		}
		return target{path: filepath.Join(dir, filepath.Base(path))}, visible(dir)
	}
	if err != nil {
		return target{}, false
	}
	info, err := fsguard.Lstat(real)
	if err != nil {
		return target{}, false
	}
	return target{path: real, info: info}, visible(real)
}

func visible(path string) bool {
	for _, dir := range elsewhere {
		if policy.Contains(dir, path) {
			return false
		}
	}
	return path != "/"
}

// absolute is a path of a line as an absolute one; "" if it is none.
func (j *Judge) absolute(name, dir string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return ""
	}
	if below, home := strings.CutPrefix(name, "~/"); home {
		if !filepath.IsAbs(j.Home) {
			return ""
		}
		return filepath.Join(j.Home, below)
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	if !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, name)
}

// refused is the access to a target that the policy refuses and that the line
// can be about. What the file's own permissions refuse is not the sandbox's.
func (j *Judge) refused(said Said, t target) (platform.Refused, bool) {
	granted := j.Policy.At(t.path)
	if t.info == nil {
		if !said.Change {
			return "", false
		}
		dir := filepath.Dir(t.path)
		_, protected := j.Policy.ProtectedAt(t.path)
		refused := protected || !j.Policy.At(dir).Has(policy.Write)
		return platform.RefusedCreate, refused && permitted(dir, unix.W_OK|unix.X_OK)
	}
	switch {
	case (said.Word == Denied || said.Word == Missing) && !granted.Has(policy.Read):
		return platform.RefusedRead, t.info.Mode()&0o444 != 0 && permitted(t.path, unix.R_OK)
	case said.Execute:
		return platform.RefusedExecute, t.info.Mode().IsRegular() && !granted.Has(policy.Execute) &&
			permitted(t.path, unix.X_OK)
	case !said.Change:
		return "", false
	default:
		return platform.RefusedWrite, t.info.Mode()&0o222 != 0 && !granted.Has(policy.Write) &&
			permitted(t.path, unix.W_OK)
	}
}

// permitted reports whether a file's own permissions allow the user an access.
// They allow root all but running what nobody may run.
func permitted(path string, mode uint32) bool { return fsguard.Access(path, mode) == nil }
