package compile

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
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
	// words are parts of a value in which capitals and small letters are mixed, if
	// they are a secret.
	words *regexp.Regexp
	// harmless is a switch, nothing in quotes, or the name of a variable.
	harmless *regexp.Regexp
	// place is what leads somewhere: a number, an address, a host or a path.
	place *regexp.Regexp
	// knownKey are names whose value may be any word.
	knownKey *regexp.Regexp
	// authorities are names whose value is the path of a list of certificates.
	authorities *regexp.Regexp
	// certificate is one, which everybody may read.
	certificate *regexp.Regexp
	// ofServer is a line of npm about one server. Its value is in no quotes, so
	// that those in it mean nothing.
	ofServer *regexp.Regexp
	// user is what signs in within an address.
	user *regexp.Regexp
	// host is that of an address, whose name is no secret.
	host *regexp.Regexp
	// overSSH begins an address of ssh.
	overSSH *regexp.Regexp
	// said is a word for a secret in a comment, or before a value in a value.
	said *regexp.Regexp
	// leads is a name whose value says where packages come from.
	leads *regexp.Regexp
}

var settingsPatterns = sync.OnceValue(func() settingsLines {
	return settingsLines{
		entry:       regexp.MustCompile(`^(?:- )?("?[@\w./:*+-]+"?(?:\[\])?)(?:\s*[=:]\s*|\s+|$)(.*)$`),
		section:     regexp.MustCompile(`^\[[\w.-]+\]$`),
		secretKey:   regexp.MustCompile(`(?i)auth|token|pass|pwd|secret|credential|user|key|cert|otp|ident`),
		secretValue: regexp.MustCompile(`@.*:|:.*@|[Nn][Pp][Mm]_|gh[pousr]_|glpat|eyJ|-----|[\w+=-]{32}`),
		random:      regexp.MustCompile(`[A-Za-z0-9]{12,}`),
		words:       regexp.MustCompile(`[\w-]{12,}`),
		harmless:    regexp.MustCompile(`^("?\$\{[A-Za-z_]\w*\}"?|true|True|false|False|yes|no|on|off|null|""|'')$`),
		place: regexp.MustCompile(`^["']?(\d{1,6}|\w{3,5}://[\w.:/*~+-]+|` +
			`[\w-]+(\.[\w-]+)+(:\d+)?(/[\w./-]*)?|(~|\.{1,2}|\$\{\w+\})?/[\w./ +-]*|\.?[a-z]+(/[\w.+-]+)+)["']?$`),
		knownKey: regexp.MustCompile(`^(access|audit-level|browser|checksumBehavior|color|defaultProtocol|` +
			`defaultSemverRangePrefix|editor|email|heading|include|init[.-][\w.-]+|install-(links|strategy)|location|` +
			`lockfile[\w-]*|loglevel|long|message|nmMode|nmHoistingLimits|node-?[lL]inker|node-options|node-version|` +
			`no-?[pP]roxy|omit|only|package-import-method|plugins|spec|pnpMode|progress([-_]bar)?|` +
			`public-hoist-pattern|hoist-pattern|python|registry-supports-\w+|resolution-mode|save-prefix|scope|` +
			`script-shell|shell|tag|tag-version-prefix|trusted-host|use-node-version|viewer|winLinkType|format|` +
			`upgrade-strategy|only-binary|no-binary|platform|implementation|abi|keyring-provider|use-feature|` +
			`root-user-action|exists-action|use-deprecated)(\[\])?$`),
		authorities: regexp.MustCompile(`^(cert|cafile|httpsCaFilePath)$`),
		certificate: regexp.MustCompile(`^ca(\[\])?\s*=\s*"-----BEGIN CERTIFICATE-----(\\n)?MII[\w+/=\\]*` +
			`-----END CERTIFICATE-----(\\n)?"$`),
		ofServer: regexp.MustCompile(`^//[^\s="']+:[\w-]+\s*=\s*[^\s"']`),
		user:     regexp.MustCompile(`(\b\w{3,5}://)[^\s/@"']*@`),
		host:     regexp.MustCompile(`(://)[\w.-]+(?::\d+)?(/|["'\s]|$)`),
		overSSH:  regexp.MustCompile(`^ssh://[\w.-]+@[\w.-]+(:\d+)?/`),
		said:     regexp.MustCompile(`(?i)(pass(word|wd|phrase)?|pwd?|secret|token|credentials?|auth|login)\b`),
		leads:    regexp.MustCompile(`(?i)registry|registries|scopes|index|find-links|server`),
	}
})

// byteOrderMark is what some editors put before the first line. To npm it is a
// part of the first key.
const byteOrderMark = "\ufeff"

// maxSettingsFile bounds the bytes of such a file. Real ones have a few lines.
const maxSettingsFile = 64 << 10

// secretLine is the number of the first line of a file of settings that may hold
// a secret, or that is not understood; 0 if there is none.
func secretLine(text string) int {
	number, is := 0, settingsPatterns()
	for line := range strings.Lines(strings.TrimPrefix(text, byteOrderMark)) {
		number++
		if hasControl(line) || !is.harmlessLine(strings.TrimSpace(line)) {
			return number
		}
	}
	return 0
}

// isComment reports whether a line without the space around it says nothing.
func isComment(line string) bool { return line == "" || line[0] == '#' || line[0] == ';' }

// hasControl reports whether a line holds characters that programs may take for
// the end of a line.
func hasControl(line string) bool {
	return strings.ContainsFunc(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), func(r rune) bool {
		return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r))
	})
}

// secret reports whether a value looks like one.
func (is *settingsLines) secret(value string) bool {
	value = is.host.ReplaceAllString(value, "$1$2")
	return is.secretValue.MatchString(value) ||
		slices.ContainsFunc(is.random.FindAllString(value, -1), func(part string) bool {
			return strings.ContainsAny(part, "0123456789") && strings.Trim(part, "0123456789") != ""
		}) ||
		slices.ContainsFunc(is.words.FindAllString(value, -1), isMixed)
}

// isMixed reports whether capitals, small letters and digits follow one another as
// in no name that people give: more than every other time something else comes.
func isMixed(word string) bool {
	kind := func(r rune) int {
		switch {
		case unicode.IsUpper(r):
			return 1
		case unicode.IsLower(r):
			return 2
		}
		return 3
	}
	changes, length, before := 0, 0, 0
	for _, r := range word {
		if r == '-' || r == '_' {
			continue
		}
		if k := kind(r); k != before {
			changes, before = changes+1, k
		}
		length++
	}
	return length >= 12 && 2*changes > length
}

// harmlessLine reports whether a line, without the space around it, is understood
// and holds no secret.
func (is *settingsLines) harmlessLine(line string) bool {
	if isComment(line) || is.section.MatchString(line) {
		// A token that is kept for later is one.
		was := is.entry.FindStringSubmatch(strings.TrimLeft(line, "#; \t"))
		return !is.secret(line) && !is.said.MatchString(line) &&
			(was == nil || was[2] == "" || !is.secretKey.MatchString(was[1]))
	}
	if is.certificate.MatchString(line) {
		return true
	}
	entry := is.entry.FindStringSubmatch(line)
	if entry == nil {
		return false
	}
	key, value := strings.Trim(entry[1], `"`), entry[2]
	head := value == "" && strings.ContainsAny(line[len(line)-1:], ":=") // its values follow
	scope, scoped := strings.CutPrefix(key, "@")
	scoped = scoped && strings.HasSuffix(scope, ":registry")
	known := is.knownKey.MatchString(key)
	named := is.secretKey.MatchString(key) && !is.authorities.MatchString(key)
	signsIn := !scoped && !known && named || is.secret(value) ||
		known && is.said.MatchString(value)
	understood := is.harmless.MatchString(value) || !signsIn &&
		(known || head || value == "" && is.place.MatchString(line) || isPlaces(is.place, value))
	return understood && !is.secret(scope)
}

// isPlaces reports whether a value is one or more places.
func isPlaces(place *regexp.Regexp, value string) bool {
	words := strings.Fields(value)
	other := func(word string) bool { return !place.MatchString(word) }
	return place.MatchString(value) || len(words) > 0 && !slices.ContainsFunc(words, other)
}

// withoutSecrets is a file of settings with only the lines that are understood
// and hold no secret. An address keeps its place without the name and password in
// it. lines are the numbers of those that were changed or left out, but for
// comments. kept is "" if nothing useful is left, or if it would mean something
// else: if a line is left out that goes on in another, or that says where
// packages come from.
func withoutSecrets(text string) (kept string, lines []int) {
	text, marked := strings.CutPrefix(text, byteOrderMark)
	for line := range strings.Lines(text) {
		if hasControl(line) {
			return "", nil
		}
	}
	var out strings.Builder
	number, is := 0, settingsPatterns()
	below := -1 // the indentation of a line that was left out, as what belongs to it is
	for raw := range strings.Lines(text) {
		number++
		line := strings.TrimSpace(raw)
		if isComment(line) {
			continue // programs need none
		}
		indent := len(raw) - len(strings.TrimLeft(raw, " \t"))
		if below >= 0 && (indent > below || indent == below && strings.HasPrefix(line, "- ")) {
			if is.leads.MatchString(line) || is.goesOn(line) {
				return "", nil
			}
			lines = append(lines, number)
			continue
		}
		below = -1
		if is.harmlessLine(line) {
			if marked && number == 1 {
				out.WriteString(byteOrderMark)
			}
			out.WriteString(strings.TrimRight(raw, "\r\n") + "\n")
			continue
		}
		lines = append(lines, number)
		if bare := is.user.ReplaceAllString(line, "$1"); bare != line && is.harmlessLine(bare) {
			out.WriteString(raw[:indent] + bare + "\n")
			continue
		}
		if is.goesOn(line) || is.matters(line) || !is.signsIn(line) {
			return "", nil
		}
		below = indent
	}
	if lacksChildren(text, out.String()) {
		return "", nil
	}
	return out.String(), lines
}

// signsIn reports whether a line is left out because it may hold a secret, and not
// because it is not understood. What npm keeps for one server is to sign in there.
func (is *settingsLines) signsIn(line string) bool {
	entry := is.entry.FindStringSubmatch(line)
	return is.ofServer.MatchString(line) || entry != nil && (is.secretKey.MatchString(entry[1]) || is.secret(entry[2]))
}

// lacksChildren reports whether a line that values belong to is kept without any.
func lacksChildren(text, kept string) bool {
	left := heads(kept)
	for head := range heads(text) {
		if has, there := left[head]; there && !has {
			return true
		}
	}
	return false
}

// heads are the lines that end with ":" or "=", and whether something belongs to
// them.
func heads(text string) map[string]bool {
	found := map[string]bool{}
	head, indent := "", 0
	for raw := range strings.Lines(text) {
		line := strings.TrimSpace(raw)
		if isComment(line) {
			continue
		}
		at := len(raw) - len(strings.TrimLeft(raw, " \t"))
		if head != "" && (at > indent || at == indent && strings.HasPrefix(line, "- ")) {
			found[head] = true
		}
		head, indent = "", at
		if strings.HasSuffix(line, ":") || strings.HasSuffix(line, "=") {
			head = line
			if !found[head] {
				found[head] = false // there
			}
		}
	}
	return found
}

// matters reports whether a file means something else without a line: if that
// says where packages come from, or is a part of something. What follows the
// address of a registry says how to sign in there.
func (is *settingsLines) matters(line string) bool {
	entry := is.entry.FindStringSubmatch(line)
	if entry == nil || entry[2] == "" {
		return true
	}
	key := entry[1]
	if at := strings.LastIndexByte(key, ':'); strings.HasPrefix(key, "//") && at > 0 {
		key = key[at:]
	}
	return is.leads.MatchString(key)
}

// goesOn reports whether a line may end within a value, or begin in one.
func (is *settingsLines) goesOn(line string) bool {
	if is.ofServer.MatchString(line) {
		line = strings.NewReplacer(`"`, "", "'", "").Replace(line)
	}
	return strings.Count(line, `"`)%2+strings.Count(line, "'")%2 > 0 || strings.HasSuffix(line, `\`) ||
		strings.ContainsAny(line, "{}[]|>&*<\x00") && !strings.Contains(line, "${")
}

// settingsOfOthers are the files of settings of other programs in the home
// directory that may hold secrets. Without them a program would go elsewhere in
// silence: npm to the public registry. A file without a secret is granted; parts
// are what sessions read of the others. Programs outside obey such a file, so it
// is left out if some session may write it. A file that a variable names is one by
// its name, see isSettings.
func (v fsView) settingsOfOthers(writable cover) (list []grant, parts []copied) {
	home := v.host.Home
	if home == "" {
		return nil, nil
	}
	for i := range v.sensitive.All {
		p := &v.sensitive.All[i]
		if p.Mixed == "" || !p.Exists || !policy.Contains(home, p.Named) {
			continue
		}
		target := v.Resolve(p.Named)
		if target.Err != nil || !target.Mode.IsRegular() || p.Moved && !v.isSettings(p.Named, target) {
			continue
		}
		part, whole := v.partOf(target, p.Mixed, p.Format)
		g := grant{path: target.Path, links: target.Links, request: request{
			text: p.Named, access: policy.Read,
			origin: policy.Origin{File: policy.OriginBuiltIn, Key: "home dotfiles"},
		}}
		switch {
		case !whole:
			part.grant, part.severity = g, document.SeverityInfo
			if v.host.Platform != "linux" {
				part.text = ""
			}
			parts = append(parts, part)
		case !writable.at(target.Path).Has(policy.Write):
			list = append(list, g)
		}
	}
	return list, parts
}

// authoritiesLines are lines of settings that name a file or a directory of
// certificates, by the format: those of npm, pip and yarn, and of curl, wget and hg.
// To curl "cert" is what signs in.
var authoritiesLines = sync.OnceValue(func() map[risks.Format]*regexp.Regexp {
	lines := map[risks.Format]*regexp.Regexp{}
	for format, names := range map[risks.Format]string{
		risks.FormatLines:     `cafile|cert|httpsCaFilePath`,
		risks.FormatCurl:      `-{0,2}(?:cacert|capath|proxy-cacert|proxy-capath)`,
		risks.FormatWget:      `(?i:ca[_-]?certificate|ca[_-]?directory)`,
		risks.FormatMercurial: `cacerts|[\w.-]+:verifycertsfile`,
	} {
		lines[format] = regexp.MustCompile(`(?m)^[ \t]*(?:` + names + `)[ \t]*[:= \t][ \t]*` +
			`["']?((?:~|\$\{\w+\})?/[^"'#\r\n]+?)["']?[ \t]*(?:#.*)?\r?$`)
	}
	return lines
})

// namedByOthers lists the certificates that settings of other programs name.
func namedByOthers(view fsView) (list []named) {
	const most = 32
	for i := range view.sensitive.All {
		p := &view.sensitive.All[i]
		if p.Mixed == "" || !p.Exists || p.Moved {
			continue
		}
		target := view.Resolve(p.Named)
		if target.Err != nil || !target.Mode.IsRegular() {
			continue
		}
		data, err := view.FS.ReadFile(target.Path)
		if err != nil || len(data) > maxSettingsFile {
			continue
		}
		line := authoritiesLines()[p.Format]
		if line == nil {
			continue
		}
		for _, found := range line.FindAllStringSubmatch(string(data), most) {
			path := found[1]
			bare, braced := strings.CutPrefix(path, "${")
			if name, below, is := strings.Cut(bare, "}"); is && braced {
				value := view.host.Env[name] // npm and yarn put it there
				if path = value + below; !filepath.IsAbs(value) {
					continue
				}
			}
			rest, is := strings.CutPrefix(path, "~")
			if is && !policy.Contains(view.host.Home, p.Named) {
				continue // it is another home
			}
			if is {
				path = view.host.Home + rest
			}
			list = append(list, named{
				path: filepath.Clean(path), certificates: true, by: []string{p.Named}, key: certificatesKey,
				why: filepath.Base(p.Named) + " names it",
			})
		}
	}
	return list
}

// partOf is what sessions read of a file of settings that may hold a secret.
// whole says that it holds none. without is what its program does without it. What
// is said about the part belongs to the file itself.
func (v fsView) partOf(target resolve.Target, without string, format risks.Format) (part copied, whole bool) {
	data, err := v.FS.ReadFile(target.Path)
	kept, lines, line := "", []int(nil), 1
	if err == nil && len(data) <= maxSettingsFile {
		kept, lines, line = partsOf(format, string(data))
	}
	if line == 0 {
		return copied{}, true
	}
	if len(lines) == 0 {
		lines = []int{line} // a comment
	}
	about := display.Quote(target.Path) + " may hold a secret in "
	return copied{
		text: kept, severity: document.SeverityWarning,
		told: about + fmt.Sprintf("%s: sessions read it without that, if there are namespaces; else %s",
			numbered(lines), without),
		lost: about + fmt.Sprintf("line %d: not granted, so %s", line, without),
		file: target.Path, position: document.Position{Line: line, Column: 1},
	}, false
}

// partsOf reads a file of settings. line is the number of the first line that may
// hold a secret, or that is not understood; 0 if there is none. kept is what is
// left without such lines, "" if that is nothing useful, and lines are the numbers
// of those that were changed or left out, but for comments.
func partsOf(format risks.Format, text string) (kept string, lines []int, line int) {
	switch format {
	case risks.FormatCurl:
		return curlOptions().parts(text)
	case risks.FormatWget:
		return wgetCommands().parts(text)
	case risks.FormatMercurial:
		return mercurialSettings().parts(text)
	case risks.FormatMaven:
		return mavenParts(text)
	case risks.FormatSigns:
		return signsParts(text)
	}
	if line = secretLine(text); line > 0 {
		kept, lines = withoutSecrets(text)
	}
	return kept, lines, line
}

// say tells something about a file of which sessions read a part.
func (c copied) say(r *reporter, message string, severity document.Severity) {
	r.add(c.file, c.position, severity, "", "%s", message)
}

// numbered names lines by their numbers.
func numbered(lines []int) string {
	const most = 5
	var words []string
	for _, line := range lines[:min(len(lines), most)] {
		words = append(words, strconv.Itoa(line))
	}
	switch {
	case len(lines) == 1:
		return "line " + words[0]
	case len(lines) > most:
		return fmt.Sprintf("lines %s and %d more", strings.Join(words, ", "), len(lines)-most)
	}
	return "lines " + strings.Join(words, ", ")
}
