package git

import (
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
)

// Answer is what git says about its configuration in a project.
type Answer []variable

// variable is one that git lists, and the file that sets it.
type variable struct {
	file  string
	entry gitconfig.Entry
}

// parseAnswer reads what "git config --list --show-origin --show-scope -z"
// prints: scope, origin, and key with value, each ended by a NUL. A relative
// origin starts at a directory that base returns.
func parseAnswer(base func(file string) string, out string) Answer {
	var answer Answer
	fields := strings.Split(out, "\x00")
	for ; len(fields) > 3; fields = fields[3:] {
		file, ok := strings.CutPrefix(fields[1], "file:")
		if !ok || file == "" {
			continue // from the environment or the command line
		}
		if !filepath.IsAbs(file) {
			file = base(file) + "/" + file
		}
		key, value, valued := strings.Cut(fields[2], "\n")
		answer = append(answer, variable{file, gitconfig.Entry{Key: key, Value: value, Valued: valued}})
	}
	return answer
}

// files lists the files that git has read.
func (a Answer) files() []string {
	var list []string
	for _, one := range a {
		if len(list) == 0 || list[len(list)-1] != one.file {
			list = append(list, one.file)
		}
	}
	return gitconfig.Compact(list)
}
