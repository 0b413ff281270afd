package audit

import (
	"regexp"
	"strings"
	"sync"
)

// patterns find secrets that a text has at any place. They are compiled on first
// use: most programs of this module never need them.
type patterns struct {
	certificate, scheme, sql, netrc, hook, form, doubtful *regexp.Regexp
}

var compiled = sync.OnceValue(func() patterns {
	return patterns{
		certificate: regexp.MustCompile(
			`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|$)`),
		scheme: regexp.MustCompile(`(?i)\b(bearer\s+|basic\s+|token\s+)([\w.~+/=-]{12,})`),
		sql: regexp.MustCompile(`(?i)\b(identified\s+(?:by|with\s+\w+\s+(?:by|as))(?:\s+password)?\s+|` +
			`password\s+|password\s*\(\s*|auth\s*[=(]\s*\(?\s*(?:'[^']*'|"[^"]*")\s*,\s*)` +
			`('(?:[^'\\]|\\.|'')*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$))`),
		netrc: regexp.MustCompile(`(?i)\b(machine\s[^\n]*?\bpassword\s+)(\S+)`),
		hook: regexp.MustCompile(`(hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/\d+/|` +
			`webhook\.office\.com/webhookb2/|/bot)([\w@%/-]*\d[\w@%/:-]*)`),
		// The forms by which services mark their own secrets.
		form: regexp.MustCompile(`gh[pousr]_\w{10,}|github_pat_\w{10,}|` +
			`gl(?:pat|oas|dt|rt|cbt|ptt|ft|soat|agent)-[\w-]{10,}|` +
			`[srp]k_(?:live|test)_\w{8,}|whsec_\w{10,}|xox[abeprs]-[\w-]{8,}|xapp-[\w-]{8,}|A(?:KIA|SIA)[0-9A-Z]{16}|` +
			`AIza[\w-]{30,}|pypi-[\w-]{30,}|do[opr]_v1_\w{20,}|SG\.[\w-]{10,}\.[\w-]{10,}|ya29\.[\w-]{10,}|` +
			`GOCSPX-[\w-]{10,}|` +
			`eyJ[\w-]{8,}\.(?:eyJ)?[\w-]+(?:\.[\w-]*)*|sh(?:pat|pss|pca|ppa)_\w{16,}|sq0(?:atp|csp)-[\w-]{16,}|` +
			`hv[sbr]\.[\w-]{16,}|tskey-[\w-]{10,}|dckr_(?:pat|oat)_[\w-]{10,}|lin_api_\w{16,}|ntn_\w{16,}|` +
			`figd_[\w-]{16,}|` +
			`AT[AC]TT3[\w=-]{16,}|sntry[su]_[\w=+/-]{16,}|gl(?:c|sa)_[\w=+/-]{16,}|NRAK-\w{16,}|dapi[0-9a-f]{32}|` +
			`AGE-SECRET-KEY-1\w{16,}|xkeysib-[\w-]{16,}|rubygems_\w{16,}|ops_eyJ[\w-]{8,}|\d{8,10}:AA[\w-]{33}`),
		// The same, of which words can begin so.
		doubtful: regexp.MustCompile(`\b(?:sk-[\w-]{16,}|npm_\w{30,}|` +
			`hf_\w{20,}|r8_\w{20,}|gsk_\w{20,}|xai-\w{20,}|pplx-\w{20,}|` +
			`pul-\w{20,}|key-[0-9a-f]{32}|SK[0-9a-f]{32}|secret_\w{30,})`),
	}
})

// forms redacts what is a secret by its form alone.
func (j *judge) forms(text string) string {
	if len(text) < 8 {
		return text
	}
	if strings.Contains(text, "-----BEGIN") {
		text = compiled().certificate.ReplaceAllString(text, redacted)
	}
	if containsAny(text, formMarks) {
		text = compiled().form.ReplaceAllString(text, redacted)
	}
	if !containsAny(text, doubtfulMarks) {
		return text
	}
	return compiled().doubtful.ReplaceAllStringFunc(text, func(found string) string {
		if strings.ContainsAny(found, "0123456789") {
			return redacted
		}
		return found
	})
}

// formMarks and doubtfulMarks are parts of what the patterns find. Looking for
// them is much faster, and nearly no argument has one.
var (
	formMarks = strings.Fields(`ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gloas- gldt- glrt- glcbt- glptt- glft- glsoat-
		glagent- k_live_ k_test_ whsec_ xox xapp- AKIA ASIA AIza pypi- dop_v1_ doo_v1_ dor_v1_ SG. ya29. GOCSPX- eyJ shpat_ shpss_ shpca_ shppa_
		sq0 hvs. hvb. hvr. tskey- dckr_ lin_api_ ntn_ figd_ ATATT3 ATCTT3 sntry glc_ glsa_ NRAK- dapi AGE-SECRET-KEY-1
		xkeysib- rubygems_ :AA`)
	doubtfulMarks = strings.Fields("sk- npm_ hf_ r8_ gsk_ xai- pplx- pul- key- SK secret_")
)

func containsAny(text string, list []string) bool {
	for _, part := range list {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// text redacts a text that is no command line: what is secret by its form, by
// its place in an address, or by the name before it.
func (j *judge) text(text string) string { return j.named(j.forms(text), inText) }

// context says where a text stands.
type context int

const (
	inText context = iota
	// inHeader: it is a header of HTTP.
	inHeader
	// inCode: it is a program, in which a value without quotes is an expression.
	inCode
	// inMessage: it is written for people.
	inMessage
)

// named redacts what is secret by what stands before it.
func (j *judge) named(text string, where context) string {
	if strings.Contains(text, "://") {
		text = credentials(text)
	}
	if containsAny(text, []string{"hooks.slack.com/", "/webhooks/", "/webhookb2/", "/bot"}) {
		text = compiled().hook.ReplaceAllString(text, "${1}"+redacted)
	}
	text = assignments(text, where)
	if where == inMessage || strings.IndexByte(text, ' ') < 0 && strings.IndexByte(text, '(') < 0 {
		return text
	}
	lower := strings.ToLower(text)
	if strings.Contains(lower, "machine") {
		text = compiled().netrc.ReplaceAllString(text, "${1}"+redacted)
	}
	if containsAny(lower, []string{"identified", "password", "auth"}) && strings.ContainsAny(text, `'"`) {
		text = compiled().sql.ReplaceAllString(text, "${1}'"+redacted+"'")
	}
	if !containsAny(lower, []string{"bearer", "basic", "token"}) {
		return text
	}
	return compiled().scheme.ReplaceAllStringFunc(text, func(found string) string {
		part := compiled().scheme.FindStringSubmatch(found)
		if !strings.ContainsAny(part[2], "0123456789=") {
			return found
		}
		return part[1] + redacted
	})
}

// credentials redacts users and passwords in addresses. A user's name alone is
// often a token; a short word is none.
func credentials(text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "://")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteString("://")
		end := strings.IndexAny(rest, "/?# \t\n\"'<>\\")
		if end < 0 {
			end = len(rest)
		}
		at := strings.LastIndexByte(rest[:end], '@')
		if colon := strings.LastIndexByte(rest[:end], ':'); at < 0 && colon >= 0 && end < len(rest) &&
			rest[end] != ' ' && strings.Trim(rest[colon+1:end], "0123456789]"+mark) != "" {
			// A password with a slash in it.
			const most = 512
			line := rest[:min(len(rest), most)]
			if stop := strings.IndexAny(line, " \t\n\"'"); stop >= 0 {
				line = line[:stop]
			}
			at = strings.IndexByte(line, '@')
		}
		if at >= 0 {
			name, password, has := strings.Cut(rest[:at], ":")
			switch {
			case (!has || password == "" || isExpanded(password)) && (isName(name) || isExpanded(name)):
				out.WriteString(rest[:at])
			default:
				out.WriteString(redacted)
			}
			rest = rest[at:]
		}
		text = rest
	}
}

// isName reports whether a text is the name of a user, and no token.
func isName(text string) bool {
	const most = 16
	return len(text) <= most && strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz._-") == ""
}

// assignments redacts values after "=" and ":", by the names before those.
func assignments(text string, where context) string {
	var out strings.Builder
	done := 0 // what out has of the text
	for i := 0; i < len(text); i++ {
		if text[i] != '=' && text[i] != ':' && text[i] != ',' || i < done {
			continue
		}
		name, quoted, gap, start := nameBefore(text[done:i])
		if name == "" {
			continue
		}
		start += done
		if text[i] == ',' && (!quoted || !strings.HasPrefix(name, "-")) { // but not of ["--token", "…"]
			continue
		}
		if quoted && start > 0 && text[start-1] == '$' { // [ "$TOKEN" = x ]
			continue
		}
		m := meaningOf(name)
		if m == ordinary && !isHeader(name) {
			continue
		}
		from, to, open := valueAfter(text, i+1)
		inAddress := start > 0 && strings.IndexByte("?&#;", text[start-1]) >= 0
		header := isHeader(name) && !quoted
		switch {
		case header && (text[i] == ':' || strings.EqualFold(name, "authorization")):
			if stop := strings.IndexAny(text[from:], "\"'\n"); open == 0 && stop >= 0 {
				to = from + stop
			} else if open == 0 {
				to = len(text)
			}
			if _, value, has := strings.Cut(text[from:to], " "); has && isExpanded(strings.TrimSpace(value)) {
				continue
			}
		case inAddress && text[i] == '=':
			if stop := strings.IndexAny(text[from:], "&# \t\n\"'"); stop >= 0 {
				to = from + stop
			} else {
				to = len(text)
			}
		case text[i] == ':' && (gap || i+1 < len(text) && (text[i+1] == ':' || strings.HasPrefix(text[i+1:], "//"))):
			continue
		case where == inMessage && (text[i] == ':' || from > i+1):
			continue
		case where == inCode && open == 0:
			continue
		case text[i] == ':' && !quoted && m == weak && where != inHeader:
			continue
		case text[i] == ':' && !quoted && from > i+1 && strings.ToLower(name) == "pass":
			continue
		case open == 0 && (gap || text[i] == ':' && from > i+1) && isCall(text[from:to]):
			continue
		case m == ofAddress && where != inHeader && !looksRandom(strings.Trim(text[from:to], `"'\`)):
			continue
		case text[i] == '=' && from == i+1 && open == 0 && strings.HasPrefix(text[from:], "="):
			continue
		}
		if value := text[from:to]; isPlain(name, value) || m == ofAddress && isName(value) {
			continue
		}
		out.WriteString(text[done:from] + redacted)
		done = to
		i = max(i, to-1)
	}
	out.WriteString(text[done:])
	return out.String()
}

// isCall reports whether a value without quotes is an expression of a program.
func isCall(value string) bool {
	name, _, is := strings.Cut(value, "(")
	return is && name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz_.") == ""
}

// isHeader reports whether a name is a header's whose value has more than one
// word.
func isHeader(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "authorization", "proxy-authorization", "cookie", "set-cookie":
		return true
	}
	return strings.HasPrefix(name, "x-") && meaningOf(name) >= ofAddress
}

// nameBefore is the name that a text ends with, perhaps in quotes and brackets,
// and where it starts. gap is true if a space stands after it.
func nameBefore(text string) (name string, quoted, gap bool, start int) {
	end := len(text)
	for end > 0 && len(text)-end < 4 && (text[end-1] == ' ' || text[end-1] == '\t') {
		end--
	}
	gap = end < len(text)
	if gap && end > 0 && strings.IndexByte("=!<>:+-*/|&", text[end-1]) >= 0 {
		return "", false, false, 0
	}
	for n := 0; end > 0 && n < 3 && strings.IndexByte(`"']\:`, text[end-1]) >= 0; n++ {
		quoted = quoted || text[end-1] == '"' || text[end-1] == '\''
		end--
	}
	const most = 80
	start = end
	for start > 0 && end-start < most && (isNameByte(text[start-1]) || text[start-1] == '-' || text[start-1] == '.') {
		start--
	}
	return text[start:end], quoted, gap, start
}

// valueAfter is where a value starts and ends, with its quotes if it has some:
// then open is not 0.
func valueAfter(text string, from int) (start, end int, open byte) {
	start = from
	for start < len(text) && start-from < 8 && (text[start] == ' ' || text[start] == '\t') {
		start++
	}
	if start < len(text) && text[start] == '[' { // a list
		if n := strings.IndexByte(text[start:], ']'); n > 0 {
			return start, start + n + 1, '['
		}
		return start, len(text), '['
	}
	at := start
	for at < len(text) && text[at] == '\\' {
		at++
	}
	if at < len(text) && (text[at] == '"' || text[at] == '\'' || text[at] == '`') {
		escapes := at - start
		open = text[at]
		for end = at + 1; end < len(text); end++ {
			switch {
			case text[end] == '\\' && escapes == 0:
				end++
			case text[end] == open:
				return start, end + 1, open
			}
		}
		return start, len(text), open
	}
	end = start
	for end < len(text) && strings.IndexByte(" \t\n\"'&,;|)}<>", text[end]) < 0 {
		end++
	}
	return start, end, 0
}

// parameter redacts "${NAME:-value}".
func (j *judge) parameter(text string) string {
	name, value, found := strings.Cut(text, "-")
	if !found {
		name, value, found = strings.Cut(text, "=")
	}
	bare := strings.Trim(name, "${:}")
	if found && meaningOf(bare) >= weak && !isPlain(bare, strings.TrimSuffix(value, "}")) {
		return text[:len(name)+1] + redacted + "}"
	}
	return j.text(text)
}
