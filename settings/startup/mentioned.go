package startup

import (
	"path/filepath"
	"strings"
)

// maxMentioned bounds what is found in one text.
const maxMentioned = 1024

// Mentioned lists the paths that a start-up file, or another program's settings,
// write out, each once: absolute, or from the home directory as ~, HOME or systemd's
// %h. They are clean. What a function, an array, an alias or eval does with one is
// not asked, so most are of files that no shell sources. Comments are left out.
func Mentioned(text, home string) (list []string) {
	if home == "" || len(text) > MaxFile {
		return nil
	}
	seen := map[string]bool{"/": true, home: true}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") {
			continue
		}
		for at := 0; at < len(line); {
			next := strings.IndexByte(line[at:], '/')
			if next < 0 {
				break
			}
			start := at + next
			length := pathLength(line[start:])
			at = start + length
			base, is := baseOf(line[:start], home)
			is = is && (!strings.HasSuffix(line[:start], ":") || !strings.HasPrefix(line[start:], "//")) // an address
			path := filepath.Clean(base + line[start:at])
			if !is || seen[path] {
				continue
			}
			seen[path] = true
			if list = append(list, path); len(list) == maxMentioned {
				return list
			}
		}
	}
	return list
}

// ends are the characters that end a path without quotation marks, or may be part
// of something that stands for more than one name.
const ends = " \t\r\n\"'`\\;:,&|()<>{}[]$*?=!#~"

// pathLength is the length of the path that a text, which begins with a slash, has
// before anything else.
func pathLength(text string) int {
	if end := strings.IndexAny(text, ends); end >= 0 {
		return end
	}
	return len(text)
}

// homes are the ways to write the home directory, the last ones of nushell, VS Code
// and systemd (systemd.unit(5)).
var homes = []string{
	"~", "$HOME", "${HOME}", `"$HOME"`, `"${HOME}"`, "$env.HOME", "($env.HOME)", "${env:HOME}", "%h",
}

// beforePath are the characters behind which a path begins.
const beforePath = " \t`:=,;&|(<>{[-+!@"

// baseOf is what stands before the slash of a path, if that begins there: nothing,
// or the home directory, which may have quotation marks of its own. A quotation
// mark opens a path if a path may begin before it.
func baseOf(before, home string) (base string, is bool) {
	for _, name := range homes {
		if rest, found := strings.CutSuffix(before, name); found {
			before, base = rest, home
			break
		}
	}
	before = strings.TrimSuffix(strings.TrimSuffix(before, `"`), "'")
	return base, before == "" || strings.ContainsRune(beforePath, rune(before[len(before)-1]))
}
