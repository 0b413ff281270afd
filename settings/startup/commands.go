package startup

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// members finds the members of JSON objects that hold a command, its arguments or a
// program, and texts those that JSON has.
var members = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)"[\w.-]*` +
		`(?:command|args|arguments|script|program|executable|path|shell|notify|helper|plugin|refresh|export)` +
		`[\w.-]*"\s*:\s*(` + jsonText + `|\[(?:[^\]"]|` + jsonText + `)*\])`)
})

const jsonText = `"(?:[^"\\]|\\.)*"`

var texts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(jsonText) })

// Commands is the part of a program's settings that may name what it runs. Of JSON
// it is what the usual members hold, a line for each: other text, such as the
// prompts that an agent remembers, names all kinds of files. Of a program's entry on
// the desktop, and of a unit of systemd, it is the lines that say what is run.
func Commands(name, text string) string {
	var found []string
	switch filepath.Ext(name) {
	default:
		return text
	case ".desktop", ".service", ".path":
		for line := range strings.Lines(text) {
			if hasAnyPrefix(line, "Exec", "TryExec", "EnvironmentFile") {
				found = append(found, strings.TrimSpace(line))
			}
		}
	case ".json", ".jsonc":
		for _, match := range members().FindAllStringSubmatch(text, -1) {
			for _, quoted := range texts().FindAllString(match[1], -1) {
				var one string
				if json.Unmarshal([]byte(quoted), &one) == nil {
					found = append(found, one)
				}
			}
		}
	}
	return strings.Join(found, "\n")
}

func hasAnyPrefix(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}
