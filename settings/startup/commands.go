package startup

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// members finds the members of JSON objects that hold a command, its arguments or a
// program.
var members = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)"[a-z._]*` +
		`(?:command|args|arguments|script|program|executable|path|shell|notify|helper)"\s*:\s*` +
		`("(?:[^"\\]|\\.)*"|\[[^\]]*\])`)
})

// Commands is the part of a program's settings that may name what it runs. Of JSON
// it is what the usual members hold: other text, such as the prompts that an agent
// remembers, names all kinds of files.
func Commands(name, text string) string {
	switch filepath.Ext(name) {
	default:
		return text
	case ".json", ".jsonc":
	}
	var found []string
	for _, match := range members().FindAllStringSubmatch(text, -1) {
		found = append(found, strings.ReplaceAll(match[1], `\/`, "/"))
	}
	return strings.Join(found, "\n")
}
