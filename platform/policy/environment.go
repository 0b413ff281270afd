package policy

import (
	"slices"
	"strings"
)

// Environment says which variables of the sidecar and of the editor's request a
// session gets.
type Environment struct {
	// Allowed holds exact names and prefixes written "PREFIX_*". It is sorted.
	Allowed []string `json:"allowed"`
	// Bare are names in Allowed that nobody has listed by hand, and whose values may
	// hold a name and a password in an address. They pass without those, and not at
	// all if the rest looks like a secret; see Filter.
	Bare   []string `json:"bare,omitempty"`
	Origin Origin   `json:"origin"`
}

// Filter splits an environment of "NAME=value" entries into the entries that
// pass and the sorted names of the others. Entries of another form are dropped
// silently.
func (e Environment) Filter(environ []string) (passed, dropped []string) {
	allowed := NamesOf(e.Allowed)
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		bare := ok && slices.Contains(e.Bare, name)
		if bare {
			value = withoutUsers(value)
			entry = name + "=" + value
		}
		switch {
		case !ok || name == "":
		case allowed.Allows(name) && (!bare || name == "GOSUMDB" || !looksSecret(value)): // that has a public key
			passed = append(passed, entry)
		default:
			dropped = append(dropped, name)
		}
	}
	slices.Sort(dropped)
	return passed, slices.Compact(dropped)
}

// withoutUsers leaves out the names and passwords in addresses.
func withoutUsers(value string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(value, "://")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteString("://")
		host := len(rest)
		if end := strings.IndexAny(rest, "/?#|,; \t\r\n\"'"); end >= 0 {
			host = end
		}
		value = rest[strings.LastIndexByte(rest[:host], '@')+1:]
	}
}

// looksSecret reports whether what is left of an address may sign in: a word of
// letters and digits that nobody has thought of, a password behind "?", or what is
// before an "@" still. Names of hosts do not count.
func looksSecret(value string) bool {
	const mixed, any = 14, 20
	for address := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(",| \t", r) }) {
		if _, rest, found := strings.Cut(address, "://"); found {
			_, path, _ := strings.Cut(rest, "/")
			if strings.Contains(rest, "://") || strings.Contains(rest, "@") {
				return true
			}
			address = path
		}
		if strings.ContainsAny(address, "@?") {
			return true
		}
		for word := range strings.FieldsFuncSeq(address, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			digits := strings.ContainsAny(word, "0123456789")
			letters := strings.Trim(word, "0123456789") != ""
			if len(word) >= any || len(word) >= mixed && digits && letters {
				return true
			}
		}
	}
	return false
}

// Allows reports whether a variable may pass. Loader and interpreter hooks need
// their exact name on the list: a matching prefix is no consent to run code in
// every program.
func (e Environment) Allows(name string) bool {
	if slices.Contains(alwaysPass, name) || slices.Contains(e.Allowed, name) {
		return true
	}
	if IsHook(name) {
		return false
	}
	for _, pattern := range e.Allowed {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Names is a list such as Environment.Allowed, for whoever asks about many
// variables.
type Names struct {
	entries map[string]bool
	// prefixes are those of entries, without *, and lengths the lengths that they
	// have.
	prefixes map[string]bool
	lengths  []int
}

// NamesOf returns the Names of a list.
func NamesOf(list []string) Names {
	names := Names{entries: map[string]bool{}, prefixes: map[string]bool{}}
	for _, entry := range list {
		names.entries[entry] = true
		if prefix, is := strings.CutSuffix(entry, "*"); is {
			names.prefixes[prefix] = true
			names.lengths = append(names.lengths, len(prefix))
		}
	}
	slices.Sort(names.lengths)
	names.lengths = slices.Compact(names.lengths)
	return names
}

// Has reports whether the list has exactly this entry.
func (n Names) Has(entry string) bool { return n.entries[entry] }

// HasPrefix reports whether the list allows every variable that begins with a
// prefix, except hooks.
func (n Names) HasPrefix(prefix string) bool {
	for _, length := range n.lengths {
		if length > len(prefix) {
			break
		}
		if n.prefixes[prefix[:length]] {
			return true
		}
	}
	return false
}

// Allows is Environment.Allows.
func (n Names) Allows(name string) bool {
	return slices.Contains(alwaysPass, name) || n.Has(name) || !IsHook(name) && n.HasPrefix(name)
}

// alwaysPass describe the terminal. The editor sets them, and they contain no
// user data.
var alwaysPass = []string{"TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "ZED_TERM"}

// IsHook reports whether a variable makes a loader, a shell or an interpreter
// run code or load files. Sources: ld.so(8), dyld(1), bash(1), dash(1), zsh(1),
// python(1), perlrun(1), ruby(1), node(1), java(1), git(1), less(1).
func IsHook(name string) bool {
	for _, prefix := range []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG_", "NPM_CONFIG_", "npm_config_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	_, hook := slices.BinarySearch(hookNames, name)
	return hook
}

// hookNames is sorted.
var hookNames = []string{
	"BASHOPTS", "BASH_ENV", "CLASSPATH", "ENV", "GCONV_PATH", "GETCONF_DIR", "GIT_ASKPASS", "GIT_EDITOR",
	"GIT_EXEC_PATH",
	"GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_PROXY_COMMAND", "GIT_SEQUENCE_EDITOR", "GIT_SSH", "GIT_SSH_COMMAND",
	"GIT_TEMPLATE_DIR",
	"GLIBC_TUNABLES", "IFS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "LESSCLOSE", "LESSOPEN", "LOCPATH",
	"MALLOC_TRACE",
	"NODE_OPTIONS", "NODE_PATH", "PERL5DB", "PERL5LIB", "PERL5OPT", "PERLIO_DEBUG", "PERLLIB", "PROMPT_COMMAND", "PS4",
	"PYTHONHOME", "PYTHONINSPECT", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE", "RUBYLIB", "RUBYOPT", "SHELLOPTS",
	"SSH_ASKPASS",
	"SUDO_ASKPASS", "ZDOTDIR", "_JAVA_OPTIONS",
}
