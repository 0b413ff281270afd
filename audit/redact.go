package audit

import (
	"regexp"
	"strings"
	"sync"
)

// redacted stands in the place of what looks like a secret.
const redacted = "[redacted]"

// secretName is a name that says that its value is secret: of a flag, a
// variable, a header or a key of JSON.
const secretName = `(?:[\w.-]*(?:token|secret|passw(?:or)?d|passphrase|passcode|pwd|api[_-]?key|access[_-]?key|` +
	`private[_-]?key|signing[_-]?key|encryption[_-]?key|account[_-]?key|credentials?|bearer|cookie|auth))`

// word is a value, quoted or not.
const word = `("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'&;,|)}]+)`

// redaction are the patterns. They are compiled on first use: most programs of
// this module never need them.
type redaction struct {
	flag, assignment, inLine, header, scheme, url, form, certificate, user, userInLine *regexp.Regexp
}

var patterns = sync.OnceValue(func() redaction {
	return redaction{
		// --password, -token: the secret is the next argument.
		flag: regexp.MustCompile(`(?i)^--?` + secretName + `s?$`),
		// NAME=VALUE, --name=VALUE, "name": "VALUE", name: VALUE.
		assignment: regexp.MustCompile(`(?i)\b(` + secretName + `s?)(["']?\s*[=:]\s*)` + word),
		// The same with a gap, within a command line.
		inLine: regexp.MustCompile(`(?i)((?:^|\s)--?` + secretName + `s?)(\s+)` + word),
		header: regexp.MustCompile(`(?i)\b((?:proxy-)?authorization\s*[:=]\s*|(?:set-)?cookie\s*:\s*|` +
			`x-[\w-]*(?:key|token|auth)[\w-]*\s*:\s*)[^"']+`),
		scheme: regexp.MustCompile(`(?i)\b(bearer\s+|basic\s+)[\w.~+/=-]{12,}`),
		// The user's name in a URL is often the token itself.
		url: regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)([^/?#\s"']*)@`),
		// The forms by which services mark their own secrets.
		form: regexp.MustCompile(`\b(?:gh[pousr]_\w{10,}|github_pat_\w{10,}|glpat-[\w-]{10,}|sk-[\w-]{16,}|` +
			`[srp]k_live_\w{8,}|` +
			`xox[abeprs]-[\w-]{8,}|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[\w-]{30,}|npm_\w{30,}|pypi-[\w-]{30,}|hf_\w{20,}|` +
			`dop_v1_\w{20,}|SG\.[\w-]{10,}\.[\w-]{10,}|ya29\.[\w-]{10,}|eyJ[\w-]{8,}\.eyJ[\w-]+(?:\.[\w-]*)?)`),
		certificate: regexp.MustCompile(
			`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
		user:       regexp.MustCompile(`(?s)^([^:\s]+):.+$`),
		userInLine: regexp.MustCompile(`(?i)(\s|^)(-u|--user|--proxy-user)([= ]\s*)(["']?[^\s:"']+):[^\s"']+`),
	}
})

// userFlags take NAME:PASSWORD as curl(1) does, in the next argument or in their
// own.
var userFlags = []string{"-u", "--user", "-U", "--proxy-user"}

// passwordPrograms take a password after -p without a gap: mysql -pSECRET,
// sshpass -pSECRET, and "sshpass -p SECRET".
var passwordPrograms = map[string]bool{
	"mysql": true, "mysqldump": true, "mysqladmin": true, "mariadb": true, "mariadb-dump": true, "sshpass": true,
}

// Redact returns arguments of a program without what looks like a secret. A
// secret that has no sign of one stays: nobody can tell it from other words.
func Redact(argv []string) []string {
	if !isMarked(argv) {
		return argv
	}
	list := make([]string, len(argv))
	secret, user := false, false // whether the next argument is one
	program := ""
	for i, arg := range argv {
		name := arg[strings.LastIndexByte(arg, '/')+1:]
		if i == 0 || passwordPrograms[name] {
			program = name
		}
		isFlag := strings.HasPrefix(arg, "-")
		switch {
		case secret:
			if list[i] = redacted; isPlain(argv[i-1], arg) {
				list[i] = arg
			}
			secret = false
			continue
		case user && patterns().user.MatchString(arg):
			list[i], user = patterns().user.ReplaceAllString(arg, "$1:"+redacted), false
			continue
		}
		secret, user = false, false
		switch {
		case passwordPrograms[program] && i > 0 && strings.HasPrefix(arg, "-p"):
			secret = arg == "-p" && program == "sshpass"
			if len(arg) > 2 {
				arg = "-p" + redacted
			}
			list[i] = arg
			continue
		case isFlag && patterns().flag.MatchString(arg):
			secret = true
		case isUserFlag(arg):
			user = true
		case strings.HasPrefix(arg, "-u") && len(arg) > 2 && strings.Contains(arg, ":"):
			name, _, _ := strings.Cut(arg, ":")
			list[i] = name + ":" + redacted
			continue
		}
		list[i] = redactText(arg)
	}
	return list
}

// marks are parts of what the patterns find, in lower case. Compiling the
// patterns takes longer than starting a program should wait.
var marks = []string{
	"token", "secret", "passw", "passphrase", "passcode", "pwd", "key", "credential", "bearer", "basic",
	"cookie", "auth",
	"://", "-u", "--user", "--proxy-user", "mysql", "mariadb", "sshpass",
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "k_live_", "xox", "akia", "asia", "aiza",
	"npm_", "pypi-", "hf_", "dop_v1_", "sg.", "ya29", "eyj", "-----begin",
}

func isMarked(argv []string) bool {
	for _, arg := range argv {
		lower := strings.ToLower(arg)
		for _, mark := range marks {
			if strings.Contains(lower, mark) {
				return true
			}
		}
	}
	return false
}

func isUserFlag(arg string) bool {
	for _, flag := range userFlags {
		if arg == flag {
			return true
		}
	}
	return false
}

// redactText redacts one argument, which may be a whole command line.
func redactText(text string) string {
	p := patterns()
	text = p.certificate.ReplaceAllString(text, redacted)
	text = p.url.ReplaceAllString(text, "${1}"+redacted+"@")
	text = p.userInLine.ReplaceAllString(text, "${1}${2}${3}${4}:"+redacted)
	text = p.header.ReplaceAllString(text, "${1}"+redacted)
	text = p.scheme.ReplaceAllString(text, "${1}"+redacted)
	for _, named := range []*regexp.Regexp{p.assignment, p.inLine} {
		text = named.ReplaceAllStringFunc(text, func(found string) string {
			part := named.FindStringSubmatch(found)
			if isPlain(part[1], part[3]) {
				return found
			}
			return part[1] + part[2] + redacted
		})
	}
	return p.form.ReplaceAllString(text, redacted)
}

// isPlain reports whether a value is none of a secret although its name looks
// so: a working directory, a number of tokens, or the name of a variable.
func isPlain(name, value string) bool {
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, "pwd"):
		return strings.HasPrefix(value, "/")
	case strings.HasSuffix(name, "tokens"):
		return len(value) <= 7 && strings.Trim(value, "0123456789") == ""
	}
	return isVariable(value)
}

// isVariable reports whether a value is $NAME or ${NAME}.
func isVariable(value string) bool {
	name, is := strings.CutPrefix(strings.Trim(value, `"`), "$")
	return is && strings.Trim(name, "{}_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == ""
}
