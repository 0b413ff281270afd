// Package sshconfig finds the files that a user's configuration of
// ssh names.
//
// [Read] follows what the configuration includes, and returns [Names].
package sshconfig

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Names are absolute paths, in the order of the configuration.
type Names struct {
	// Included are the files that the configuration was read from, the first one
	// left out.
	Included []string
	// Patterns are included names with a pattern in the last name, as they were
	// expanded.
	Patterns []string
	// Widened stand for all included names with a pattern, and maybe for more: "*"
	// in the last name is for any characters. Their directories exist.
	Widened []string
	// KnownHosts are files with keys of servers.
	KnownHosts []string
	// Public are files with public keys and certificates. They need not exist.
	Public []string
	// Agents are sockets of agents, without that of SSH_AUTH_SOCK. They need not
	// exist.
	Agents []string
}

// Host is what the names of a configuration are expanded against.
type Host struct {
	// Home is the user's home directory.
	Home string
	// Env maps the names of variables to their values.
	Env map[string]string
	// Tokens maps the letters behind "%" to what they stand for, as far as that
	// is the same for all servers.
	Tokens map[byte]string
	// ReadFile reads a file of the configuration.
	ReadFile func(path string) ([]byte, error)
	// Glob lists the files that a pattern in an absolute path stands for.
	Glob func(pattern string) []string
}

// maxFiles bounds the files of a configuration. ssh follows 16 levels.
const maxFiles = 64

// Read reads a configuration. All its conditions are taken to be met: nobody
// knows which host a session will name. A file that cannot be read names
// nothing.
func Read(host Host, file string) Names {
	r := reader{host: host}
	r.read(file)
	for len(r.pending) > 0 {
		next := r.pending[0]
		r.pending = r.pending[1:]
		r.names.Included = append(r.names.Included, next)
		r.read(next)
	}
	return r.names
}

type reader struct {
	host    Host
	names   Names
	seen    []string
	pending []string
}

func (r *reader) read(file string) {
	r.seen = append(r.seen, file)
	text, err := r.host.ReadFile(file)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		words := split(line)
		if len(words) < 2 {
			continue
		}
		r.keyword(strings.ToLower(words[0]), words[1:])
	}
}

func (r *reader) keyword(keyword string, values []string) {
	switch keyword {
	case "include":
		for _, value := range values {
			r.include(value)
		}
	case "userknownhostsfile", "revokedhostkeys":
		for _, value := range values {
			add(&r.names.KnownHosts, r.expand(value))
		}
	case "certificatefile":
		add(&r.names.Public, r.expand(values[0]))
	case "identityagent":
		r.agent(values[0])
	case "identityfile":
		if path := r.expand(values[0]); path != "" {
			// ssh asks the agent for the key whose public part it finds here.
			path = strings.TrimSuffix(path, ".pub")
			add(&r.names.Public, path+".pub")
			add(&r.names.Public, path+"-cert.pub")
		}
	}
}

// agent adds an agent's socket. Its value may be the name of a variable.
func (r *reader) agent(value string) {
	if value == "none" || value == "SSH_AUTH_SOCK" {
		return // no agent, or the usual one
	}
	if name, is := strings.CutPrefix(value, "$"); is && !strings.HasPrefix(name, "{") {
		if value = r.host.Env[name]; !filepath.IsAbs(value) || strings.Contains(value, "\x00") {
			return
		}
		add(&r.names.Agents, filepath.Clean(value)) // as it is
		return
	}
	add(&r.names.Agents, r.expand(value))
}

func (r *reader) include(value string) {
	if path := r.expand(value); path != "" {
		value = path
	} else if value != "" && !strings.ContainsAny(value, "%$~\x00") && !filepath.IsAbs(value) {
		value = filepath.Join(r.host.Home, ".ssh", value)
	} else {
		return
	}
	if strings.ContainsAny(filepath.Base(value), "*?[") {
		add(&r.names.Patterns, value)
	}
	if dir, name := filepath.Split(value); strings.ContainsAny(name, "*?[") {
		for _, dir := range r.host.Glob(filepath.Clean(dir)) {
			add(&r.names.Widened, widened(dir, name, r.host.Home))
		}
	}
	for _, path := range r.host.Glob(value) {
		if len(r.seen)+len(r.pending) < maxFiles && !slices.Contains(r.seen, path) &&
			!slices.Contains(r.pending, path) {
			r.pending = append(r.pending, path)
		}
	}
}

// classes are those of glob(3), such as "[a-z]". They are compiled when they are
// needed: every stage starts with this package, too.
var classes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[[!^]?[^]/][^]/]*\]`) })

// widened is a pattern with "*" for what glob(3) takes for one of several
// characters; "" if that is all in a home directory, or in one that holds it.
func widened(dir, name, home string) string {
	wide := classes().ReplaceAllString(strings.ReplaceAll(name, "?", "*"), "*")
	if before, _, has := strings.Cut(wide, "["); has {
		wide = before + "*"
	}
	all := strings.Trim(strings.TrimPrefix(wide, "."), "*") == ""
	if all && strings.HasPrefix(home+"/", strings.TrimSuffix(dir, "/")+"/") {
		return ""
	}
	return filepath.Join(dir, wide)
}

// expand makes a name absolute as ssh does, or returns "": a name without a
// directory is another file in each directory, and names that depend on the
// server are not known.
func (r *reader) expand(name string) string {
	for {
		before, rest, found := strings.Cut(name, "${")
		variable, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			break
		}
		value, set := r.host.Env[variable]
		if !set {
			return "" // as ssh ignores it
		}
		name = before + strings.ReplaceAll(value, "${", "") + after
	}
	if rest, is := strings.CutPrefix(name, "~/"); is {
		name = r.host.Home + "/" + rest
	}
	name, known := r.tokens(name)
	if !known || !filepath.IsAbs(name) || strings.Contains(name, "\x00") {
		return ""
	}
	return filepath.Clean(name)
}

// tokens replaces what begins with "%". It returns false if something depends on
// the server.
func (r *reader) tokens(name string) (string, bool) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(name, "%")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		if rest == "" {
			return "", false
		}
		switch value, known := r.host.Tokens[rest[0]]; {
		case rest[0] == '%':
			b.WriteByte('%')
		case rest[0] == 'd':
			b.WriteString(r.host.Home)
		case known && value != "":
			b.WriteString(value)
		default:
			return "", false
		}
		name = rest[1:]
	}
}

func add(list *[]string, path string) {
	if path != "" && !slices.Contains(*list, path) {
		*list = append(*list, path)
	}
}

// split returns the keyword of a line and its values, as ssh has them
// (process_config_line in readconf.c, argv_split in misc.c): separated by white
// space, or by one "=" behind the keyword. Quotation marks may be anywhere in a
// value. What follows "#" is a comment. A line whose quotation does not end stops
// ssh.
func split(line string) []string {
	const blanks = " \t\f\r"
	rest := strings.TrimSpace(line)
	if rest == "" || rest[0] == '#' {
		return nil
	}
	var words []string
	if quoted, is := strings.CutPrefix(rest, `"`); is {
		keyword, after, _ := strings.Cut(quoted, `"`)
		words, rest = append(words, keyword), after
	} else {
		end := strings.IndexAny(rest, blanks+`="`)
		if end < 0 {
			return []string{rest}
		}
		words, rest = append(words, rest[:end]), rest[end:]
	}
	rest = strings.TrimLeft(rest, blanks)
	if value, is := strings.CutPrefix(rest, "="); is {
		rest = value
	}
	for {
		rest = strings.TrimLeft(rest, blanks)
		if rest == "" || rest[0] == '#' {
			return words
		}
		word, after, whole := cutWord(rest)
		if !whole {
			return nil
		}
		words, rest = append(words, word), after
	}
}

// cutWord cuts the first word off a text; whole is false if its quotation does not
// end.
func cutWord(text string) (word, rest string, whole bool) {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case c == '\\' && (next == '"' || next == '\'' || next == '\\' || quote == 0 && next == ' '):
			b.WriteByte(next)
			i++
		case quote == 0 && (c == ' ' || c == '\t'):
			return b.String(), text[i:], true
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", quote == 0
}
