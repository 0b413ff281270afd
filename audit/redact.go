package audit

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// redacted stands in the place of what looks like a secret.
const redacted = "[redacted]"

// maxJudged bounds the bytes of arguments that are looked at. What is beyond is
// not kept.
const maxJudged = 4 * maxArgv

// judge redacts the arguments of one program.
type judge struct {
	expansions []string // of command lines, redacted, by their number
}

// Redact returns arguments of a program without what looks like a secret. A
// secret that has no sign of one stays: nobody can tell it from other words.
// Command lines and JSON in arguments are judged by their words. Of long
// arguments only the first ones are returned, and "[…]" for the rest.
func Redact(argv []string) []string {
	rest, long := maxJudged, false
	list := make([]string, 0, min(len(argv), maxJudged))
	for _, arg := range argv {
		if rest <= len(arg) {
			list, long = append(list, strings.ReplaceAll(arg[:rest], mark, "\ufffd")), true
			break
		}
		list = append(list, strings.ReplaceAll(arg, mark, "\ufffd"))
		rest -= len(arg) + 1 // so that empty arguments count too
	}
	j := &judge{}
	for i, arg := range list {
		list[i] = j.forms(arg)
	}
	list = j.command(list, 0)
	for i, arg := range list {
		list[i] = j.forms(j.expand(arg))
	}
	if long { // the last one is not whole, so nobody knows what its end is
		last := &list[len(list)-1]
		if *last = head(*last, len(*last)/2); strings.HasPrefix(*last, "{") || strings.HasPrefix(*last, "[") {
			*last = redacted // JSON that cannot be read
		}
		if len(argv) > len(list) {
			list = append(list, omitted)
		}
	}
	return list
}

// head is the beginning of a text.
func head(text string, most int) string {
	for most > 0 && most < len(text) && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:min(most, len(text))] + omitted
}

// role is what the next argument is.
type role int

const (
	anything role = iota
	secret
	// userAndPassword: NAME:PASSWORD.
	userAndPassword
	header
	cookies
	commandLine
	code
	message
)

// command redacts the words of a command.
func (j *judge) command(list []string, depth int) []string {
	out := slices.Clone(list)
	c := commandOf(list)
	next, flag := anything, ""
	for i, word := range list {
		now := next
		next = anything
		if c.secrets[i] && !isExpanded(word) {
			out[i] = redacted
			continue
		}
		if name, is := c.values[i]; is {
			out[i] = name + "=" + redacted
			continue
		}
		if now == anything {
			out[i], next = j.option(c.at[i], word, depth)
			flag = word
			continue
		}
		out[i] = j.as(now, c.at[i], flag, word, depth)
	}
	return out
}

// as redacts a word whose role is known.
func (j *judge) as(r role, program, flag, word string, depth int) string {
	switch r {
	case secret:
		if isPlain(flag, word) {
			return word
		}
		return redacted
	case userAndPassword:
		return userPassword(word)
	case header:
		return j.named(j.forms(word), inHeader)
	case cookies:
		if !strings.Contains(word, "=") || isExpanded(word) {
			return word // a file
		}
		return redacted
	case commandLine:
		return j.line(word, true, depth+1)
	case code:
		return j.named(j.forms(word), inCode)
	case message:
		return j.named(j.forms(word), inMessage)
	}
	return j.argument(program, word, depth)
}

// argument redacts a word that can be anything.
func (j *judge) argument(program, word string, depth int) string {
	if name, value, is := strings.Cut(word, "="); is && strings.Trim(name, "\"'") == name && isOneWord(name) {
		switch m := meaningOf(name); {
		case isExpanded(value), isPlain(name, value):
		case m >= weak && !strings.Contains(name, "?"):
			return name + "=" + redacted
		}
	}
	if strings.HasPrefix(word, "{") || strings.HasPrefix(word, "[") {
		if text, is := j.json(word, depth); is {
			return text
		}
	}
	if readers.has(program) || agents.has(program) && strings.Contains(word, " ") {
		return j.named(j.forms(word), inMessage)
	}
	return j.prose(word, depth)
}

// prose redacts a text that can be a command line.
func (j *judge) prose(text string, depth int) string {
	if strings.ContainsAny(text, " \t\n") {
		return j.line(text, false, depth+1)
	}
	return j.text(text)
}

func isOneWord(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return r >= 0x80 || !isNameByte(byte(r)) && !strings.ContainsRune("-.:/@[]", r)
	}) < 0
}

// userPassword redacts the password of "name:password", which also stands as
// "name%password" and "name,password".
func userPassword(word string) string {
	at := strings.IndexAny(word, ":%,")
	if at < 0 || at == len(word)-1 || isExpanded(word[at+1:]) || isNumbers(word) {
		return word
	}
	if at == 0 || isExpanded(word[:at]) || len(word[:at]) < 40 {
		return word[:at+1] + redacted
	}
	return redacted
}

// isNumbers reports whether a text is "1000:1000", as of a user and a group.
func isNumbers(text string) bool { return strings.Trim(text, "0123456789:") == "" }

// option redacts a word that may be a flag, and says what the next one is.
func (j *judge) option(program, word string, depth int) (string, role) {
	name := strings.TrimLeft(word, "-")
	dashes := len(word) - len(name)
	switch {
	case dashes == 0 && !strings.HasPrefix(word, "/"), name == "":
		return j.argument(program, word, depth), anything
	case dashes == 0: // /p:SECRET
		if r, value := shortOption(program, word); r != anything && value == "" {
			return word, r
		}
		if flag, value, is := strings.Cut(word, ":"); is && len(flag) < 24 && !strings.Contains(flag[1:], "/") &&
			(flag == "/p" || meaningOf(flag) >= weak) && value != "" {
			return flag + ":" + redacted, anything
		}
		return j.argument(program, word, depth), anything
	}
	if r, value := shortOption(program, word); r != anything {
		if value == "" {
			return word, r
		}
		prefix := word[:len(word)-len(value)]
		return prefix + j.as(r, program, prefix, value, depth), anything
	}
	if flag, value, is := strings.Cut(word, "="); is {
		if r := longOption(program, flag); r != anything && r != secret {
			return flag + "=" + j.as(r, program, flag, value, depth), anything
		}
		return j.argument(program, word, depth), anything
	}
	if strings.ContainsAny(word, " \t\n:") {
		return j.argument(program, word, depth), anything
	}
	return j.argument(program, word, depth), longOption(program, word)
}

// longOption is what follows a flag that is known by its name.
func longOption(program, flag string) role {
	name := strings.ToLower(strings.TrimLeft(flag, "-"))
	switch name {
	case "user", "proxy-user":
		if !noPasswords.has(program) {
			return userAndPassword
		}
		return anything
	case "header", "proxy-header":
		return header
	case "cookie":
		return cookies
	case "command", "run", "execute":
		if !interpreters.has(program) && !databases.has(program) {
			return commandLine
		}
		return anything
	case "eval", "print":
		if interpreters.has(program) {
			return code
		}
	case "encodedcommand", "enc":
		if program == "pwsh" || program == "powershell" {
			return secret // which nobody can read
		}
	case "message", "title", "body", "notes", "subject", "description", "prompt":
		return message
	}
	if len(name) > 1 && meaningOf(name) >= weak {
		return secret
	}
	return anything
}

// isCluster reports whether a word is short flags that end with one of these.
func isCluster(word, flags string) bool {
	return len(word) > 1 && word[0] == '-' && word[1] != '-' && len(word) < 12 &&
		strings.IndexByte(flags, word[len(word)-1]) >= 0 && isLetters(word[1:])
}

func isLetters(text string) bool {
	return strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz") == ""
}

// shortOption is what a program's own flag says: of the value, if it is in the
// same word, else of the next word.
func shortOption(program, word string) (r role, value string) {
	for _, o := range options()[program] {
		attached, is := strings.CutPrefix(word, o.flag)
		switch {
		case is && attached != "" && o.attached && (o.flag[0] == '-' || attached[0] == ':'):
			return o.role, attached
		case is && attached == "" && o.separate:
			return o.role, ""
		}
	}
	switch {
	case program == "curl" && strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--"):
		return curlOption(word)
	case shells.has(program) && len(word) > 1 && word[1] != '-' && strings.Contains(word, "c") && isLetters(word[1:]):
		return commandLine, ""
	case interpreters.has(program) && isCluster(word, "ceErpE"):
		return code, ""
	case databases.has(program) && isCluster(word, "ce"):
		return anything, ""
	case messengers.has(program) && isCluster(word, "mp"):
		return message, ""
	case messengers.has(program) && strings.HasPrefix(word, "-m") && len(word) > 2:
		return message, word[2:]
	case !noPasswords.has(program) && word == "-u":
		return userAndPassword, ""
	case !noPasswords.has(program) && strings.HasPrefix(word, "-u") && len(word) > 2 && strings.Contains(word, ":"):
		return userAndPassword, word[2:]
	}
	return anything, ""
}

// curlOption reads a cluster of curl's short flags, of which the last one can
// have its value in the same word.
func curlOption(word string) (role, string) {
	roles := map[byte]role{
		'u': userAndPassword, 'U': userAndPassword, 'b': cookies, 'H': header, 'E': userAndPassword,
	}
	for i := 1; i < len(word); i++ {
		if r, is := roles[word[i]]; is {
			return r, word[i+1:]
		}
		if strings.IndexByte("AcCdDeFhKmoPQrtTwxXyYz", word[i]) >= 0 {
			return anything, "" // the rest is a value
		}
	}
	return anything, ""
}

// base is the name of a program, without its directory and version.
func base(word string) string {
	name := word[strings.LastIndexAny(word, `/\`)+1:]
	name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	if trimmed := strings.TrimRight(name, "0123456789."); interpreters.has(trimmed) {
		return trimmed
	}
	return name
}
