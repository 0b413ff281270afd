package compile

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// secretSigns tell that a line of settings may hold a secret, whatever the format
// of the file is.
type secretSigns struct {
	// value marks secrets by the form that services give them, and option those
	// behind an option of a command.
	value, option *regexp.Regexp
	// user is what signs in within an address, bare within one without a scheme, and
	// slashed with a slash in the password.
	user, bare, slashed *regexp.Regexp
	// query is a secret in the query of an address, and path are parts of its path.
	query, path *regexp.Regexp
	// variable is the name of a variable, which programs replace.
	variable, variableOfAddress *regexp.Regexp
	// section is a heading that speaks of a secret.
	section *regexp.Regexp
	// named is a name before "=" or ":", and spaced one before a blank.
	named, spaced *regexp.Regexp
	// speaks are names of secrets, ends are ends of such names, and key those of
	// keys, some of which are public.
	speaks, ends, key *regexp.Regexp
	// elsewhere ends names of files, addresses and programs that secrets are in,
	// and place is such a value. harmless begins any other value that is no secret.
	elsewhere, place, harmless *regexp.Regexp
	// host is a name of Bundler's for a host, whose value signs in there, and pair
	// is such a value. chosen and groups are names of something else.
	host, pair, chosen, groups *regexp.Regexp
	// escape is a character by its number, as JSON, TOML, YAML and Java have it.
	escape *regexp.Regexp
}

var settingsSigns = sync.OnceValue(func() secretSigns {
	const speaks = `token|secret|passw|passphrase|pwd|credential|oauth|bearer|http-basic|custom-header|` +
		`client-certificate|api[_-]?key|access[_-]?key|private[_-]?key|consumer-key|authorization|auth[_-]?key|` +
		`auth[_-]?header|cookie|login`
	const words = `true|false|yes|no|on|off|null|none|never|always|auto|prompt|disabled|subprocess|keyring|netrc|` +
		`anaconda-auth|conda-auth-\w+`
	return secretSigns{
		value: regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:gh[pousr]_\w{10}|github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|soat|` +
			`agent|imt|ffct|oas)-[\w-]{16}|npm_\w{20}|sk-(?:\w+-)?\w{16}|[sr]k_live_|xox[abeprs]-|` +
			`A[KS]IA[0-9A-Z]{12}|AIza[\w-]{20}|hf_\w{16}|dop_v1_|SG\.[\w-]{16}|pypi-\w{16}|rubygems_\w{16}|dckr_pat_|` +
			`squ_\w{16}|AKC\w{20}|ATBB\w{8}|ATATT3|hvs\.\w{8}|cmVmdGtu|eyJ[\w-]{8}|(?i:basic|bearer)\s+[\w+/=.-]{6})|` +
			`-----BEGIN [A-Z ]*PRIVATE`),
		option:  regexp.MustCompile(`(?i)(?:^|[\s"'])--?[\w-]*(?:key|password|token|secret)(?:\s+|=)[^\s-]`),
		user:    regexp.MustCompile(`([\w+.-]+://)([^\s/@"'<>?#,]*)@`),
		bare:    regexp.MustCompile(`(?:^|[\s"'=])([^\s"'/@:=]+):[^\s"'/@]+@[\w.-]`),
		slashed: regexp.MustCompile(`://(?:[^\s/@"'.:]*:[^\s@"']*[^\s@"'/]|[^\s/@"':]+:\d*[^\d/@\s"'][^\s@"']*)@`),
		query: regexp.MustCompile(
			`(?i)[?&;][\w-]*(?:token|key|auth|sig|secret|pass|code|credential)[\w-]*=[^&\s"']`),
		path:     regexp.MustCompile(`/t/[\w.-]{6,}|/priv/\w|hooks\.slack\.com/\w|/[A-Za-z0-9]{16,}`),
		variable: regexp.MustCompile(`\$\{[A-Za-z_]\w*\}|"\$\w*(?i:token|secret|password|key|auth)\w*"`),
		variableOfAddress: regexp.MustCompile(
			`\$\{[A-Za-z_]\w*\}|\$[A-Z_][A-Z0-9_]*`),
		section: regexp.MustCompile(`(?i)^\s*\[.*(?:` + speaks + `).*\]`),
		named:   regexp.MustCompile(`([\w./@$-]+)["']?\s*([:=])[ \t]*`),
		spaced:  regexp.MustCompile(`^\s*([\w.-]+)[ \t]+([^\s:=].*)$`),
		speaks:  regexp.MustCompile(`(?i)` + speaks),
		ends:    regexp.MustCompile(`(?i:auth|pass|creds?|jwt)$|(?:^|[._-])(?i:pw|pat)$|P(?:at|AT)$`),
		key:     regexp.MustCompile(`(?:^|[._-])key$|[a-z]Key$|_KEY$`),
		elsewhere: regexp.MustCompile(`(?i)[_.-]?(?:files?|path|dir|directory|url|endpoint|server|providers?|` +
			`helper|policy|ttl|timeout|lifetime|expir(?:y|es|es[_-]in))$`),
		place: regexp.MustCompile(`^["']?(?:[~./]|\w+://|[a-z][a-z-]*["']?\s*(?:[,}\]]|$)|\d+["']?\s*(?:[,}\]]|$))`),
		harmless: regexp.MustCompile(`^(?i)(?:(?:""|''|\{\s*\}|\[\s*\]|"(?:` + words + `|\d)"|'(?:` + words + `|\d)'|` +
			`(?:` + words + `))(?:\s*$|\s*[,}\]]|\s+[#;])|\d(?:\s*$|\s+[#;])|` +
			`["']?(?:~|/(?:etc|home|nix|opt|root|run|srv|usr|Users|var))/[\w./-]*["']?(?:\s*$|\s*[,}\]]))`),
		escape: regexp.MustCompile(`\\u+[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\U[0-9A-Fa-f]{8}`),
		host:   regexp.MustCompile(`^\s*["']?BUNDLE_(?:\w*__|(?i:https?):|\w+:\d)`),
		pair:   regexp.MustCompile(`^\s*["']?BUNDLE_[^\s"']+["']?:\s+["']?[^\s:/"']+:[^\s"'/][^\s"']*["']?\s*$`),
		groups: regexp.MustCompile(`^\s*["']?BUNDLE_(?:WITH|WITHOUT|ONLY)["']?:`),
		chosen: regexp.MustCompile(`^\s*["']?BUNDLE_(?:(?:LOCAL|BUILD|MIRROR)__|PATH__SYSTEM["']?:|` +
			`GEM__(?:TEST|CI|MIT|COC|LINTER|RUBOCOP|CHANGELOG|EXT|BUNDLE|GITHUB_USERNAME)["']?:)`),
	}
})

// longestLine bounds the lines of such a file. Long ones are what programs write
// to be read by none.
const longestLine = 8 << 10

// signsParts is partsOf for settings of any format. What is left of them differs
// only in that addresses have no name and no password. A file with another sign of
// a secret is not read at all, since nothing here knows what it would mean without.
func signsParts(text string) (kept string, lines []int, line int) {
	is := settingsSigns()
	var out, joined strings.Builder
	number, understood := 0, true
	for raw := range strings.Lines(strings.TrimPrefix(text, byteOrderMark)) {
		number++
		if hasControl(raw) || joined.Len()+len(raw) > longestLine {
			return "", nil, number
		}
		// Gradle and nix.conf continue a line behind a backslash.
		body := strings.TrimRight(raw, "\r\n")
		if strings.HasSuffix(body, `\`) {
			joined.WriteString(strings.TrimSuffix(body, `\`))
			out.WriteString(raw)
			continue
		}
		continued := joined.Len() > 0
		joined.WriteString(raw)
		whole := joined.String()
		joined.Reset()
		if !is.inLine(whole) {
			out.WriteString(raw)
			continue
		}
		if line == 0 {
			line = number
		}
		lines = append(lines, number)
		bare := is.withoutUsers(raw)
		understood = understood && !continued && !is.inLine(bare) && !is.leavesUser(raw)
		out.WriteString(bare)
	}
	switch {
	case joined.Len() > 0: // the end of the file does not end a line
		return "", nil, number
	case line == 0 || !understood:
		return "", nil, line
	}
	return out.String(), lines, line
}

// withoutUsers leaves out what signs in within the addresses of a line.
func (is *secretSigns) withoutUsers(line string) string {
	return is.user.ReplaceAllStringFunc(line, func(address string) string {
		if is.signsIn(address) {
			scheme, _, _ := strings.Cut(address, "://")
			return scheme + "://"
		}
		return address
	})
}

// leavesUser reports whether a part of what signs in would be left: a password may
// have "@" in it.
func (is *secretSigns) leavesUser(line string) bool {
	for _, at := range is.user.FindAllStringIndex(line, -1) {
		rest := line[at[1]:]
		if end := strings.IndexAny(rest, " \t\"'<>,"); end >= 0 {
			rest = rest[:end]
		}
		if is.signsIn(line[at[0]:at[1]]) && strings.Contains(strings.ReplaceAll(rest, "/@", ""), "@") {
			return true
		}
	}
	return false
}

// knownUsers are names in addresses that are no secret: those of git, and those
// by which key rings find one.
var knownUsers = []string{"git", "oauth2", "oauth2accesstoken", "VssSessionToken", "__token__", "aws"}

// signsIn reports whether the beginning of an address, up to "@", may hold a
// secret. The user of ssh is none.
func (is *secretSigns) signsIn(address string) bool {
	scheme, user, _ := strings.Cut(strings.TrimSuffix(is.variableOfAddress.ReplaceAllString(address, ""), "@"), "://")
	shell := slices.ContainsFunc([]string{"ssh", "sftp", "rsync"}, func(name string) bool {
		return strings.Contains(scheme, name)
	})
	known := shell || slices.Contains(knownUsers, user)
	return strings.Trim(user, ":") != "" && (strings.Contains(user, ":") || !known)
}

// inLine reports whether a line may hold a secret, also in a comment, as it is
// written or with the characters that its escapes stand for.
func (is *secretSigns) inLine(line string) bool {
	plain := is.escape.ReplaceAllStringFunc(line, func(text string) string {
		code, err := strconv.ParseUint(strings.TrimLeft(text[2:], "u"), 16, 32)
		if err != nil || code < ' ' || code > unicode.MaxRune {
			return text
		}
		return string(rune(code))
	})
	return is.inWritten(line) || plain != line && is.inWritten(plain)
}

// inWritten is inLine for a line as it is written.
func (is *secretSigns) inWritten(line string) bool {
	line = strings.TrimRight(line, " \t\r\n")
	line = strings.NewReplacer(`\/`, "/", `\:`, ":", `\=`, "=").Replace(line) // as JSON and Java write them
	return is.inAddress(line) || is.inValue(line) || is.inBundler(line) || is.isNamed(line)
}

// inAddress reports whether an address may hold a secret.
func (is *secretSigns) inAddress(line string) bool {
	if slices.ContainsFunc(is.user.FindAllString(line, -1), is.signsIn) {
		return true
	}
	if is.slashed.MatchString(is.variableOfAddress.ReplaceAllString(line, "")) || is.query.MatchString(line) {
		return true
	}
	for _, found := range is.bare.FindAllStringSubmatch(line, -1) {
		if !slices.Contains([]string{"npm", "jsr", "workspace", "mailto", "patch"}, found[1]) {
			return true
		}
	}
	for _, at := range is.path.FindAllStringIndex(line, -1) {
		part, before := line[at[0]:at[1]], line[:at[0]]
		if !strings.Contains(before, "://") || strings.HasSuffix(before, "/archive") {
			continue
		}
		known := strings.HasPrefix(part, "/priv/") || strings.HasPrefix(part, "hooks.")
		digit := strings.ContainsFunc(part, unicode.IsDigit)
		if known || digit || strings.HasPrefix(part, "/t/") && strings.ContainsFunc(part, unicode.IsUpper) {
			return true
		}
	}
	return false
}

// inValue reports whether something in a line looks like a secret.
func (is *secretSigns) inValue(line string) bool {
	return is.value.MatchString(line) || is.option.MatchString(line) || is.section.MatchString(line)
}

// inBundler reports whether a line of Bundler's signs in at a host.
func (is *secretSigns) inBundler(line string) bool {
	return is.pair.MatchString(line) && !is.groups.MatchString(line) ||
		is.host.MatchString(line) && !is.chosen.MatchString(line)
}

// isNamed reports whether a name in a line speaks of a secret, and what follows is
// none of what such names have otherwise.
func (is *secretSigns) isNamed(line string) bool {
	if is.chosen.MatchString(line) {
		return false
	}
	const switched = "true" // stands for a variable
	line = is.variable.ReplaceAllString(line, switched)
	if found := is.spaced.FindStringSubmatch(line); found != nil && is.signs(found[1], " ", found[2]) {
		return true
	}
	for at := 0; ; {
		found := is.named.FindStringSubmatchIndex(line[at:])
		if found == nil {
			return false
		}
		name, separator := line[at+found[2]:at+found[3]], line[at+found[4]:at+found[5]]
		at += found[1] // a value may begin with a name
		if is.signs(name, separator, line[at:]) {
			return true
		}
	}
}

// signs reports whether a name speaks of a secret, and the value behind it is one.
func (is *secretSigns) signs(name, separator, value string) bool {
	switch {
	case name == "PWD" || name == "OLDPWD" || name == "GOAUTH", strings.Contains(strings.ToLower(name), "tokeniz"):
		return false
	case is.elsewhere.MatchString(name) && is.place.MatchString(value):
		return false
	case is.speaks.MatchString(name), is.ends.MatchString(name):
		empty := separator == "=" && value == ""
		return !empty && !is.harmless.MatchString(value)
	case is.key.MatchString(name):
		return isLong(value)
	}
	return false
}

// isLong reports whether a value is so long, and has such characters, that a key
// may be written in it.
func isLong(value string) bool {
	value = strings.Trim(value, `"' `+"\t")
	const least = 16
	other := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+/=_-", r)
	}
	if end := strings.IndexFunc(value, other); end >= 0 {
		value = value[:end]
	}
	return len(value) >= least && !strings.HasPrefix(value, "/") && strings.ContainsFunc(value, unicode.IsDigit)
}
