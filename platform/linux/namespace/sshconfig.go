package namespace

import "strings"

// sshIncludes lists the patterns in the Include lines of an ssh_config(5), as
// they are written.
func sshIncludes(config string) []string {
	var names []string
	for line := range strings.Lines(config) {
		// The keyword may be quoted, and followed by "=" (readconf.c).
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n=\"", r) })
		if len(words) == 0 || !strings.EqualFold(words[0], "include") {
			continue
		}
		for _, word := range words[1:] {
			if strings.HasPrefix(word, "#") {
				break
			}
			names = append(names, word)
		}
	}
	return names
}
