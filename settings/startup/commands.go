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

// loads finds lines that say in which directories shells and editors find what they
// load: functions, completions and plugins. A plugin's own in Lua is ofPlugin.
var loads, ofPlugin = pattern(`\b(?:fpath|fish_function_path|fish_complete_path|runtimepath|rtp|packpath|load-path|` +
	`package\.path|Plug|zplug|zinit|antigen|antidote)\b`), pattern(`\bdir\s*=`)

func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// Loads is the part of a start-up file, or of an editor's settings, that may name
// directories whose files are loaded. A list of zsh's goes on to its parenthesis.
func Loads(name, text string) string {
	var found []string
	const most = 64      // lines of a list
	open, opened := 0, 0 // parentheses, and the lines since the first
	for line := range strings.Lines(text) {
		plugin := filepath.Ext(name) == ".lua" && ofPlugin().MatchString(line)
		if open == 0 && !plugin && !loads().MatchString(line) {
			continue
		}
		found = append(found, strings.TrimSpace(line))
		if line, _, _ = strings.Cut(line, " #"); open == 0 && !strings.Contains(line, "=(") {
			continue
		}
		opened++
		if open = max(0, open+strings.Count(line, "(")-strings.Count(line, ")")); open == 0 || opened == most {
			open, opened = 0, 0
		}
	}
	return strings.Join(found, "\n")
}

func hasAnyPrefix(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}
