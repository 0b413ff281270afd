// Package formats makes a file without its secrets.
//
// [Hide] reads a file whose format is known, puts a placeholder in the place of
// each secret, and writes the file anew from what it has read. So nothing of the
// file remains that was not understood: no comment, no key that stands twice. What
// cannot be read is refused as a whole. See docs/design/credentials.md.
package formats

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Kind is a format of files that hold secrets.
type Kind string

const (
	kindNPM    Kind = "npm"    // .npmrc
	kindINI    Kind = "ini"    // pip.conf, .pypirc, the credentials of aws
	kindNetrc  Kind = "netrc"  // netrc(5)
	kindGit    Kind = "git"    // git-credential-store(1)
	kindDocker Kind = "docker" // config.json
	kindJSON   Kind = "json"   // sign-ins of agents and tools
	kindYAML   Kind = "yaml"   // hosts.yml of gh
	kindTOML   Kind = "toml"   // credentials.toml of cargo
)

// kinds are the formats by the ends of paths.
var kinds = []struct {
	end  string
	kind Kind
}{
	{"/.npmrc", kindNPM},
	{"/pip.conf", kindINI},
	{"/pip/pip.conf", kindINI},
	{"/.pypirc", kindINI},
	{"/.aws/credentials", kindINI},
	{"/.netrc", kindNetrc},
	{"/_netrc", kindNetrc},
	{"/.git-credentials", kindGit},
	{"/git/credentials", kindGit},
	{"/.docker/config.json", kindDocker},
	{"/containers/auth.json", kindDocker},
	{"/gh/hosts.yml", kindYAML},
	{"/glab-cli/config.yml", kindYAML},
	{"/.cargo/credentials.toml", kindTOML},
	{"/.cargo/credentials", kindTOML},
	{".json", kindJSON},
	{".yml", kindYAML},
	{".yaml", kindYAML},
	{".toml", kindTOML},
	{".ini", kindINI},
}

// KindOf is the format of the file at a path, by its name; "" if it is not known.
func KindOf(name string) Kind {
	for _, k := range kinds {
		if strings.HasSuffix(path.Clean("/"+name), k.end) {
			return k.kind
		}
	}
	return ""
}

// MaxBytes bounds a file. Real ones have a few lines.
const MaxBytes = 256 << 10

// Secret is one that a file holds.
type Secret struct {
	// Name says where it stands, such as "auths.ghcr.io.auth".
	Name string
	// Host is where the file says that it belongs, in small letters, perhaps with a
	// port; "" if the file does not say.
	Host  string
	Value string
	// InURL is the number of bytes that it takes in an address; 0 elsewhere.
	InURL int
}

// Maker makes the placeholder of a secret: of the length InURL if that is set,
// else of the secret's length. The same secret has the same placeholder.
type Maker func(Secret) (string, error)

var (
	errTooLarge = fmt.Errorf("larger than %d KiB", MaxBytes>>10)
	errUnknown  = errors.New("the format of this file is not known")
	errRemains  = errors.New("a secret would remain in it")
	errName     = errors.New("a name in it looks like a secret")
)

// Hide returns a file's text with placeholders, and the secrets that they stand
// for, in the order of the text. An error holds nothing of the file but names of
// its keys.
func Hide(kind Kind, data []byte, placeholder Maker) (text []byte, found []Secret, err error) {
	if len(data) > MaxBytes {
		return nil, nil, errTooLarge
	}
	text, found, err = replace(kind, data, placeholder)
	if err != nil {
		return nil, nil, err
	}
	// What a program reads of the text are placeholders.
	_, again, err := replace(kind, text, func(s Secret) (string, error) { return s.Value, nil })
	if err != nil {
		return nil, nil, fmt.Errorf("its placeholders cannot be read: %w", err)
	}
	if len(again) != len(found) {
		return nil, nil, errRemains
	}
	for i, secret := range found {
		made, err := placeholder(secret)
		if err != nil {
			return nil, nil, err
		}
		if again[i].Value != made || strings.Contains(string(text), secret.Value) {
			return nil, nil, errRemains
		}
	}
	return text, found, nil
}

// document is a file that was read.
type document interface {
	// leaves are its values, in an order that does not change.
	leaves() []leaf
	// names are all keys, also those of nothing.
	names() []string
	text() ([]byte, error)
}

// leaf is one value. set replaces it, and is nil for one that is no text.
type leaf struct {
	path  []string
	value string
	set   func(string)
}

func (l leaf) name() string { return strings.Join(l.path, ".") }

// key is the last name of its path that is no number of a list.
func (l leaf) key() string {
	for _, name := range slices.Backward(l.path) {
		if strings.Trim(name, "0123456789") != "" {
			return name
		}
	}
	return ""
}

func replace(kind Kind, data []byte, placeholder Maker) (text []byte, found []Secret, err error) {
	read := map[Kind]func([]byte) (document, error){
		kindNPM: readNPM, kindINI: readINI, kindNetrc: readNetrc, kindGit: readGit,
		kindDocker: readJSON, kindJSON: readJSON, kindYAML: readYAML, kindTOML: readTOML,
	}[kind]
	if read == nil {
		return nil, nil, errUnknown
	}
	doc, err := read(data)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range doc.names() {
		if looksRandom(name) || strings.Contains(name, "@") && strings.Contains(name, "://") {
			return nil, nil, errName
		}
	}
	for _, l := range doc.leaves() {
		secrets, err := hide(kind, l, placeholder)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", l.name(), err)
		}
		found = append(found, secrets...)
	}
	text, err = doc.text()
	return text, found, err
}

// patterns are compiled when a file is read.
type patterns struct{ secret, harmless, variable *regexp.Regexp }

var keys = sync.OnceValue(func() patterns {
	return patterns{
		// Names of values that are secrets, whatever they look like.
		secret: regexp.MustCompile(`(?i)(token|secret|passw(or)?d|passphrase|api[-_]?key|access[-_]?key(id|_id)?|` +
			`_auth|^auth$|private[-_]?key|cookie|credentials?|assertion|session)$`),
		// Names of values that are shown, whatever they look like.
		harmless: regexp.MustCompile(`(?i)(_type|type|_uri|_url|_mode|mode|_method|credsstore|cred[-_]?helpers?|` +
			`expir\w*|_at|scopes?|region|output|registry|index-url|repository|protocol|git_protocol|editor|version|` +
			`client_id|account_id|project_id|user|username|login|email)$`),
		variable: regexp.MustCompile(`^\$(\{\w+\}|\w+)$`),
	}
})

var (
	errShape   = errors.New("a secret of another type than a text")
	errBase64  = errors.New("expected NAME:PASSWORD in base64")
	errAddress = errors.New("an address that cannot be read")
)

// hide puts placeholders in the place of the secrets of one value.
func hide(kind Kind, l leaf, placeholder Maker) (found []Secret, err error) {
	is := keys()
	key := l.key()
	if at := strings.LastIndexByte(key, ':'); at >= 0 {
		key = key[at+1:] // //HOST/:_authToken
	}
	named := is.secret.MatchString(key)
	if l.set == nil {
		if named {
			return nil, errShape
		}
		return nil, nil
	}
	secret := Secret{Name: l.name(), Host: hostOf(kind, l), Value: l.value}
	put := func(wrap func(string) string) error {
		made, err := placeholder(secret)
		if err != nil {
			return err
		}
		l.set(wrap(made))
		found = append(found, secret)
		return nil
	}
	same := func(made string) string { return made }
	switch {
	case l.value == "", is.variable.MatchString(l.value):
		return nil, nil
	case kind == kindDocker && key == "auth", kind == kindNPM && key == "_auth":
		decoded, err := base64.StdEncoding.DecodeString(l.value)
		name, password, cut := strings.Cut(string(decoded), ":")
		if err != nil || !cut || password == "" {
			return nil, errBase64
		}
		secret.Value = password
		err = put(func(made string) string { return base64.StdEncoding.EncodeToString([]byte(name + ":" + made)) })
		return found, err
	case kind == kindNPM && key == "_password":
		decoded, err := base64.StdEncoding.DecodeString(l.value)
		if err != nil {
			return nil, errBase64
		}
		secret.Value = string(decoded)
		err = put(func(made string) string { return base64.StdEncoding.EncodeToString([]byte(made)) })
		return found, err
	case strings.Contains(l.value, "://"):
		return hideInURLs(l, secret, placeholder)
	case named, !is.harmless.MatchString(key) && looksRandom(l.value):
		err := put(same)
		return found, err
	}
	return nil, nil
}

// hideInURLs is hide for a value of one address or more.
func hideInURLs(l leaf, secret Secret, placeholder Maker) (found []Secret, err error) {
	words := strings.Fields(l.value)
	for i, word := range words {
		scheme, rest, is := strings.Cut(word, "://")
		authority, path, cut := strings.Cut(rest, "/")
		users, host, has := cutLast(authority, "@")
		if parsed, err := url.Parse(word); err != nil || !is || has != (parsed.User != nil) ||
			strings.Contains(path, "@") || parsed.RawQuery != "" && looksRandom(parsed.RawQuery) {
			return nil, errAddress
		}
		if !has {
			continue
		}
		name, password, both := strings.Cut(users, ":")
		if !both {
			name, password = "", users
		}
		if password == "" || keys().variable.MatchString(password) || !both && !looksRandom(password) {
			continue
		}
		plain, err := url.PathUnescape(password)
		if err != nil {
			return nil, errAddress
		}
		secret.Host, secret.Value, secret.InURL = strings.ToLower(host), plain, len(password)
		made, err := placeholder(secret)
		if err != nil {
			return nil, err
		}
		if both {
			made = name + ":" + made
		}
		words[i] = scheme + "://" + made + "@" + host
		if cut {
			words[i] += "/" + path
		}
		found = append(found, secret)
	}
	if found != nil {
		l.set(strings.Join(words, " "))
	}
	return found, nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(text, separator); at >= 0 {
		return text[:at], text[at+len(separator):], true
	}
	return "", text, false
}

// hostOf is where a secret belongs, by where it stands.
func hostOf(kind Kind, l leaf) string {
	host := ""
	switch {
	case kind == kindNPM && strings.HasPrefix(l.path[0], "//"):
		host = l.path[0][2:]
	case kind == kindNetrc, kind == kindYAML && len(l.path) > 1 && strings.Contains(l.path[0], "."):
		host = l.path[0]
	case kind == kindDocker && len(l.path) > 2 && l.path[0] == "auths",
		kind == kindJSON && len(l.path) > 2 && l.path[0] == "credentials":
		host = l.path[1]
	}
	if _, after, is := strings.Cut(host, "://"); is {
		host = after
	}
	host, _, _ = strings.Cut(host, "/")
	return strings.ToLower(host)
}

// looksRandom reports whether a text looks like a key: long, of letters and digits
// that follow one another as in no name that people give.
func looksRandom(text string) bool {
	const least, longest = 16, 24
	words := strings.FieldsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	return slices.ContainsFunc(words, func(word string) bool {
		if len(word) < least {
			return false
		}
		changes, before := 0, 0
		letters, digits := false, false
		for _, r := range word {
			kind := 1
			switch {
			case r >= '0' && r <= '9':
				kind, digits = 2, true
			case r >= 'a':
				kind, letters = 3, true
			default:
				letters = true
			}
			if kind != before {
				changes, before = changes+1, kind
			}
		}
		return letters && digits && (len(word) >= longest || 3*changes > len(word)) || 2*changes > len(word)
	})
}
