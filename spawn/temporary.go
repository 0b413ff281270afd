package spawn

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// temporaryVariables name a directory for temporary files. POSIX has TMPDIR;
// programs that come from other systems use the others.
var temporaryVariables = []string{"TMPDIR", "TMP", "TEMP"}

// temporaryEnvironment makes the variables for temporary files name directories
// that the session has. If /tmp is the project's own, a directory in it that a
// variable names is made there. Otherwise TMPDIR names the project's own.
func (s *surroundings) temporaryEnvironment(env []string) []string {
	if len(s.policy.Temporary) == 0 {
		return env
	}
	if !s.confinement.OwnTemporary {
		writable := slices.DeleteFunc(slices.Clone(s.policy.Temporary), func(t policy.Temporary) bool {
			return !s.policy.At(t.Path).Has(policy.Write)
		})
		if len(writable) == 0 {
			return env
		}
		// Not in memory, as /dev/shm, if there is another.
		disk := slices.IndexFunc(writable, func(t policy.Temporary) bool { return filepath.Base(t.Path) == "tmp" })
		rest := env[:0:0]
		for _, entry := range env {
			if name, _, _ := strings.Cut(entry, "="); name != temporaryVariables[0] {
				rest = append(rest, entry)
			}
		}
		return append(rest, temporaryVariables[0]+"="+writable[max(disk, 0)].Source)
	}
	for _, name := range temporaryVariables {
		value := lookUp(env, name)
		if !filepath.IsAbs(value) {
			continue
		}
		path := filepath.Clean(value)
		if t, own := s.policy.TemporaryAt(path); own && path != t.Path {
			if err := makeBelow(t, path); err != nil {
				s.log.Warn("a directory for temporary files cannot be made", "variable", name, "error", err)
			}
		}
	}
	return env
}

// withOwn adds variables of the session's own. They are not dropped, then.
func withOwn(env, dropped, own []string) (with, still []string) {
	env, dropped = slices.Clone(env), slices.Clone(dropped)
	for _, entry := range own {
		name, _, _ := strings.Cut(entry, "=")
		env = slices.DeleteFunc(env, func(other string) bool { return strings.HasPrefix(other, name+"=") })
		env = append(env, entry)
		dropped = slices.DeleteFunc(dropped, func(other string) bool { return other == name })
	}
	return env, dropped
}

// makeBelow makes a directory that exists outside in the one that the project
// has for itself. Sessions write there, so no symlink may lead elsewhere.
func makeBelow(t policy.Temporary, path string) error {
	root, err := os.OpenRoot(t.Source)
	if err != nil {
		return err
	}
	defer root.Close()
	relative, err := filepath.Rel(t.Path, path)
	if err != nil {
		return err
	}
	return root.MkdirAll(relative, 0o700)
}
