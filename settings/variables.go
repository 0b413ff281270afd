package settings

import (
	"errors"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

var (
	errBadPattern = errors.New("expected NAME or PREFIX_*, of letters, digits and _")
	errEverything = errors.New("would pass everything; name what a session needs")
)

// checkPattern validates an entry of allowed_env_vars.
func checkPattern(pattern string) error {
	if pattern == "*" {
		return errEverything
	}
	if !resolve.IsName(strings.TrimSuffix(pattern, "*")) {
		return errBadPattern
	}
	return nil
}

// patternsOf returns the valid entries of allowed_env_vars, sorted; nil if the
// layer does not set it.
func patternsOf(s *settings, r *reporter) []string {
	const key = "allowed_env_vars"
	from, ok := s.from[key]
	if !ok {
		return nil
	}
	list := []string{}
	for i, pattern := range s.values.AllowedEnvVars {
		if err := checkPattern(pattern); err != nil {
			r.add(from.file, from.element(i), document.SeverityError, key,
				"%s: %v; the entry does not count", display.Quote(pattern), err)
			continue
		}
		list = append(list, pattern)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
