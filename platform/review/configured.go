package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitchange"
)

// configured are the accepted changes of a configuration of git.
type configured struct {
	keys []string
	// signature is the file's after the last of them. If it differs at the end,
	// somebody else has changed the file, too.
	signature string
}

// maxKeys bounds the settings that a finding names.
const maxKeys = 16

// Configured records that the session has changed settings of git in a file. It
// may be called from several goroutines.
func (s *State) Configured(path string, keys []string) {
	now := ""
	if info, err := fsguard.Lstat(path); err == nil {
		now = signature(info)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.configured == nil {
		s.configured = map[string]*configured{}
	}
	c := s.configured[path]
	if c == nil {
		c = &configured{}
		s.configured[path] = c
	}
	c.signature = now
	for _, key := range keys {
		if !slices.Contains(c.keys, key) {
			c.keys = append(c.keys, key)
		}
	}
}

// explain is the reason of a path, or what the session has changed in it.
func (s *State) explain(path, signature string, why reason) reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.configured[path]
	if c == nil || c.signature != signature || len(c.keys) == 0 {
		return why
	}
	named := gitchange.Summary(c.keys)
	more := ""
	if len(named) > maxKeys {
		named, more = named[:maxKeys], fmt.Sprintf(" and %d more", len(named)-maxKeys)
	}
	why.why = "a session has set git's " + strings.Join(named, ", ") + more
	return why
}
