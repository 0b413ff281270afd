package compile

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// span is a part of a file, in bytes.
type span struct{ from, to int }

// mavenParts is partsOf for settings.xml of Maven. Left out are servers, which only
// sign in, what else signs in, properties that speak of a secret, and comments. Any
// other value that looks like a secret closes the file: without it, packages would
// come from elsewhere.
func mavenParts(text string) (kept string, lines []int, line int) {
	lineOf := func(at int) int { return 1 + strings.Count(text[:at], "\n") }
	m := mavenReader{decoder: xml.NewDecoder(strings.NewReader(text)), is: settingsPatterns(), comment: -1}
	m.decoder.CharsetReader = func(label string, input io.Reader) (io.Reader, error) {
		label = strings.ToLower(label)
		like := strings.HasPrefix(label, "iso-8859-") || strings.HasPrefix(label, "windows-125") || label == "us-ascii"
		if !like || strings.IndexFunc(text, func(r rune) bool { return r > '~' }) >= 0 {
			return nil, errMaven
		}
		return input, nil // ASCII is the same in these
	}
	refused, err := m.read()
	if err == nil && refused < 0 && len(m.left) == 0 && m.comment < 0 {
		return "", nil, 0
	}
	if err != nil || refused >= 0 {
		if refused < 0 {
			refused = min(int(m.decoder.InputOffset()), len(text))
		}
		return "", nil, lineOf(refused)
	}
	var out strings.Builder
	at := 0
	cut := slices.SortedFunc(slices.Values(slices.Concat(m.left, m.comments)), func(a, b span) int {
		return a.from - b.from
	})
	for _, part := range cut {
		if part.from < at {
			continue // in one that is left out as a whole
		}
		out.WriteString(text[at:part.from])
		at = part.to
	}
	out.WriteString(text[at:])
	for _, part := range m.left {
		lines = append(lines, lineOf(part.from))
	}
	slices.Sort(lines)
	if lines = slices.Compact(lines); len(lines) > 0 {
		return out.String(), lines, lines[0]
	}
	return out.String(), nil, lineOf(m.comment)
}

// mavenReader finds what is left out of a settings.xml.
type mavenReader struct {
	decoder  *xml.Decoder
	is       settingsLines
	left     []span // elements
	comments []span
	comment  int  // where the first comment that may hold a secret begins; -1
	property bool // a property is left out
}

var errMaven = errors.New("not understood")

// read reads the file to its end. refused is where a value is that closes it; -1
// if there is none.
func (m *mavenReader) read() (refused int, err error) {
	var names []string
	rooted, conditional := false, false
	for {
		from := int(m.decoder.InputOffset())
		token, err := m.decoder.Token()
		if errors.Is(err, io.EOF) {
			if !rooted || conditional && m.property {
				return -1, errMaven // a profile may depend on what is left out
			}
			return -1, nil
		}
		if err != nil {
			return -1, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			if len(names) == 0 && (name != "settings" || rooted) {
				return from, nil
			}
			rooted = true
			for _, attribute := range token.Attr {
				if m.isSecret(attribute.Value) {
					return from, nil
				}
			}
			within := append(slices.Clone(names), name)
			conditional = conditional || endsWith(within, "activation", "property")
			left, property := m.signsIn(within), len(names) > 0 && names[len(names)-1] == "properties"
			if left || property {
				secret, err := m.skip(name)
				if err != nil {
					return -1, err
				}
				if left || secret {
					m.property = m.property || property
					m.left = append(m.left, span{from, int(m.decoder.InputOffset())})
				}
				continue
			}
			names = within
		case xml.EndElement:
			names = names[:len(names)-1]
		case xml.CharData:
			last := ""
			if len(names) > 0 {
				last = names[len(names)-1]
			}
			if !slices.Contains(mavenNames, last) && m.isSecret(string(token)) {
				return from, nil
			}
		case xml.Comment:
			m.comments = append(m.comments, span{from, int(m.decoder.InputOffset())})
			if m.comment < 0 && (m.isSecret(string(token)) || m.is.said.Match(token)) {
				m.comment = from
			}
		case xml.ProcInst:
			if token.Target != "xml" {
				return from, nil
			}
		default: // entities
			return from, nil
		}
	}
}

// mavenNames are elements whose value is a name, which somebody has thought of.
var mavenNames = []string{"id", "name", "mirrorOf", "layout", "activeProfile", "pluginGroup"}

// mavenProperty is what signs in among the names of properties, and a secret in
// their values, beside settingsLines.secretKey.
var mavenProperty = sync.OnceValues(func() (name, value *regexp.Regexp) {
	return regexp.MustCompile(`(?i)login|\b(pw|pat|apikey)\b`),
		regexp.MustCompile(`(?i)(pass\w*|pwd?|secret|token|key)\s*[=:]`)
})

// skip reads an element to its end. secret says that a property of this name and
// value may be one.
func (m *mavenReader) skip(name string) (secret bool, err error) {
	names, values := mavenProperty()
	secret = m.is.secretKey.MatchString(name) || names.MatchString(name)
	for depth := 1; depth > 0; {
		token, err := m.decoder.Token()
		if err != nil {
			return false, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		case xml.CharData:
			secret = secret || m.isSecret(string(token)) || values.Match(token)
		}
	}
	return secret, nil
}

// signsIn reports whether an element is only there to sign in.
func (m *mavenReader) signsIn(names []string) bool {
	name := names[len(names)-1]
	return slices.Contains([]string{"server", "servers", "password", "passphrase", "privateKey"}, name) ||
		endsWith(names, "proxy", "username")
}

// isSecret reports whether text may hold a secret, or an address with one.
func (m *mavenReader) isSecret(text string) bool {
	return slices.ContainsFunc(strings.Fields(text), func(word string) bool {
		return m.is.secret(word) || m.is.user.MatchString(word)
	})
}

func endsWith(names []string, last ...string) bool {
	return len(names) >= len(last) && slices.Equal(names[len(names)-len(last):], last)
}
