package explain

import (
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// Advise is Why, and names a setting only as Suggest does: what is refused has the
// same advice wherever somebody asks about it. The errors are those of both.
func Advise(s *compile.Snapshot, kind document.Kind, attempt Attempt, target string) (Answer, error) {
	x, err := Why(s, kind, attempt, target)
	if err != nil || x.Allowed || x.doubt != "" { // beside a doubt Suggest names the same, in words
		return x, err
	}
	advice, err := suggest(s, kind, string(attempt), target, "")
	if err != nil {
		return Answer{}, err
	}
	x.givesUpKey = x.givesUp()
	x.Key, x.Value, x.List, x.Hint = advice.Key, advice.Value, advice.List, advice.Hint
	return x, nil
}

// withReason names the command that says why a path is protected. It is left out if
// a shell would read the path in another way.
func (s Suggestion) withReason(access, target string) Suggestion {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@%,:"
	if s.Hint == protectedHint && filepath.IsAbs(target) && strings.Trim(target, plain) == "" {
		if access == "create" || access == "remove" {
			access = string(Write)
		}
		s.Hint += " (sandbox-sidecar explain " + access + " " + target + " says why)"
	}
	return s
}
