package compile

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// settingsLines tell what is no secret in a file of settings of npm, yarn or pip.
type settingsLines struct {
	// entry is "key = value", "key: value", "key value" or a value alone, and
	// section is "[name]".
	entry, section *regexp.Regexp
	// secretKey are names of what signs in, and secretValue is what looks so.
	secretKey, secretValue *regexp.Regexp
	// random is what may be a part of an address that opens it.
	random *regexp.Regexp
	// harmless is a switch, nothing in quotes, or the name of a variable.
	harmless *regexp.Regexp
	// place is what leads somewhere: a number, an address, a host or a path.
	place *regexp.Regexp
	// knownKey are names whose value may be any word.
	knownKey *regexp.Regexp
}

var settingsPatterns = sync.OnceValue(func() settingsLines {
	return settingsLines{
		entry:       regexp.MustCompile(`^(?:- )?("?[@\w./:*+-]+"?(?:\[\])?)(?:\s*[=:]\s*|\s+|$)(.*)$`),
		section:     regexp.MustCompile(`^\[[\w.-]+\]$`),
		secretKey:   regexp.MustCompile(`(?i)auth|token|pass|pwd|secret|credential|user|key|cert|otp|ident`),
		secretValue: regexp.MustCompile(`@.*:|:.*@|[Nn][Pp][Mm]_|gh[pousr]_|glpat|eyJ|-----|[\w+=-]{32}`),
		random:      regexp.MustCompile(`[A-Za-z0-9]{12,}`),
		harmless:    regexp.MustCompile(`^("?\$\{[A-Za-z_]\w*\}"?|true|false|null|""|'')$`),
		place: regexp.MustCompile(`^["']?(\d{1,6}|\w{3,5}://[\w.:/*~+-]+|` +
			`[\w-]+(\.[\w-]+)+(:\d+)?(/[\w./-]*)?|(~|\.{1,2}|\$\{\w+\})?/[\w./ +-]*|\.?[a-z]+(/[\w.+-]+)+)["']?$`),
		knownKey: regexp.MustCompile(`^(access|audit-level|browser|checksumBehavior|color|defaultProtocol|` +
			`defaultSemverRangePrefix|editor|email|heading|include|init[.-][\w.-]+|install-(links|strategy)|location|` +
			`lockfile[\w-]*|loglevel|long|message|nmMode|nmHoistingLimits|node-?[lL]inker|node-options|node-version|` +
			`no-?[pP]roxy|omit|only|package-import-method|plugins|spec|pnpMode|progress(-bar)?|` +
			`public-hoist-pattern|hoist-pattern|python|registry-supports-\w+|resolution-mode|save-prefix|scope|` +
			`script-shell|shell|tag|tag-version-prefix|trusted-host|use-node-version|viewer|winLinkType|format|` +
			`upgrade-strategy|only-binary|no-binary|platform|implementation|abi|keyring-provider)(\[\])?$`),
	}
})

// maxSettingsFile bounds the bytes of such a file. Real ones have a few lines.
const maxSettingsFile = 64 << 10

// secretLine is the number of the first line of a file of settings that may hold
// a secret, or that is not understood; 0 if there is none.
func secretLine(text string) int {
	number, is := 0, settingsPatterns()
	secret := func(value string) bool {
		return is.secretValue.MatchString(value) ||
			slices.ContainsFunc(is.random.FindAllString(value, -1), func(part string) bool {
				return strings.ContainsAny(part, "0123456789") && strings.Trim(part, "0123456789") != ""
			})
	}
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if comment := line == "" || line[0] == '#' || line[0] == ';'; comment || is.section.MatchString(line) {
			// A token that is kept for later is one.
			was := is.entry.FindStringSubmatch(strings.TrimLeft(line, "#; \t"))
			if secret(line) || was != nil && was[2] != "" && is.secretKey.MatchString(was[1]) {
				return number
			}
			continue
		}
		entry := is.entry.FindStringSubmatch(line)
		if entry == nil {
			return number
		}
		key, value := strings.Trim(entry[1], `"`), entry[2]
		head := value == "" && strings.ContainsAny(line[len(line)-1:], ":=") // its values follow
		scope, scoped := strings.CutPrefix(key, "@")
		scoped = scoped && strings.HasSuffix(scope, ":registry")
		known := is.knownKey.MatchString(key)
		signsIn := !scoped && !known && is.secretKey.MatchString(key) || secret(value)
		understood := is.harmless.MatchString(value) || !signsIn &&
			(known || head || value == "" && is.place.MatchString(line) || isPlaces(is.place, value))
		if !understood || secret(scope) {
			return number
		}
	}
	return 0
}

// isPlaces reports whether a value is one or more places.
func isPlaces(place *regexp.Regexp, value string) bool {
	words := strings.Fields(value)
	other := func(word string) bool { return !place.MatchString(word) }
	return place.MatchString(value) || len(words) > 0 && !slices.ContainsFunc(words, other)
}

// isPlain reports whether a place that may hold secrets holds none. If it is
// there and does, or if nobody can tell, that is said: what reads it goes on
// without it, in silence.
func (v fsView) isPlain(c chosen, p toolchain.Place, target resolve.Target, r *reporter) bool {
	if !target.Mode.IsRegular() {
		return false
	}
	data, err := v.FS.ReadFile(target.Path)
	line := 1
	if err == nil && len(data) <= maxSettingsFile {
		line = secretLine(string(data))
	}
	if line > 0 {
		r.add(c.origin.File, c.at, document.SeverityWarning, toolchainsKey,
			"%s: %s may hold a secret in line %d: not granted, so %s", display.Quote(c.Name),
			display.Quote(target.Path), line, p.Plain)
	}
	return line == 0
}
