package settings

import "path/filepath"

// WrittenTo is the file that Allow would write a suggestion into; empty where
// there is none.
func (s *Snapshot) WrittenTo(scope Scope, suggestion Suggestion) string {
	if scope == ScopeProject {
		return filepath.Join(s.projectDir, ".zed", "settings.json")
	}
	file, err := s.fileOfUser(suggestion.Key)
	if err != nil {
		return ""
	}
	return file
}
