package audit

import (
	"strings"
	"sync"
	"unicode"
)

// meaning is what a name says of its value.
type meaning int

const (
	// ordinary: nothing.
	ordinary meaning = iota
	// ofAddress: it is secret in an address, as in "?key=…".
	ofAddress
	// weak: it is secret if the name is a flag's, a variable's or a header's.
	weak
	// strong: it is secret wherever it stands.
	strong
)

// set is a set of words. It is made when it is first asked for: every process of
// the program starts with this package, also a stage, and few of them ask.
type set func() map[string]bool

// words is the set of the words of a text.
func words(list string) set {
	return sync.OnceValue(func() map[string]bool {
		all := map[string]bool{}
		for word := range strings.FieldsSeq(list) {
			all[word] = true
		}
		return all
	})
}

func (s set) has(word string) bool { return s()[word] }

var (
	// strongEnds end a part of a name whose value is secret.
	strongEnds = strings.Fields(`token secret password passwd passwort passphrase passcode pwd apikey accesskey
		privatekey secretkey signingkey encryptionkey accountkey authkey masterkey hexkey credential bearer requirepass
		connectionstring`)
	// secretKeys make a "key" secret, as in "api_key".
	secretKeys = words(`api access private secret signing encryption account auth master license deploy service shared
		storage subscription webhook session hmac consumer client app application admin write read`)
	// noPass end in "pass" and are none.
	noPass = words("bypass compass trespass encompass surpass overpass underpass multipass keepass lastpass")
	// strongParts and weakParts are whole parts.
	strongParts = words("pw pass passw psw pswd psk pat jwt otp")
	weakParts   = words("auth cookie cookies sig signature sas authtoken")
	addressOnly = words("key sid session code jwt hash sign ticket")
	// harmless is what says of a name that its value is about a secret, and not
	// one.
	harmless = words(`file path dir directory stdin cmd command env helper type kind name url uri id ids length len size
		count limit budget usage ttl expiry expires expiration age method mode provider policy version algorithm alg host
		port scope scopes issuer user username realm sock socket jar challenge fd prompt only through cost store storage
		manager rotation window format index agent audience endpoint ref required enabled disabled separator
		test tests alias style strategy program plugin min max per fallback support`)
	// negations begin the name of a flag that has no value.
	negations = words("no disable without skip")
)

// meaningOf says what a name of a flag, a variable, a header or a key says.
func meaningOf(name string) meaning {
	parts := partsOf(name)
	if len(parts) == 0 || negations.has(parts[0]) {
		return ordinary
	}
	if last := parts[len(parts)-1]; harmless.has(last) {
		return ordinary
	}
	most := ordinary
	for i, part := range parts {
		if i > 0 && part == "login" && strings.HasSuffix(parts[i-1], "sonar") {
			return strong
		}
		single := strings.TrimSuffix(part, "s")
		switch {
		case strongParts.has(part), strings.HasSuffix(part, "pass") && !noPass.has(part):
			most = strong
		case single == "key" && i > 0 && secretKeys.has(parts[i-1]):
			most = strong
		case weakParts.has(part):
			most = max(most, weak)
		case addressOnly.has(part):
			most = max(most, ofAddress)
		default:
			for _, end := range strongEnds {
				if strings.HasSuffix(single, end) {
					most = strong
				}
			}
		}
	}
	return most
}

// partsOf are the words of a name, in lower case: of API_KEY, api-key and apiKey
// the same.
func partsOf(name string) (parts []string) {
	var part strings.Builder
	end := func() {
		if part.Len() > 0 {
			parts = append(parts, part.String())
			part.Reset()
		}
	}
	var before rune
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && unicode.IsLower(before):
			end()
			part.WriteRune(unicode.ToLower(r))
		default:
			part.WriteRune(unicode.ToLower(r))
		}
		before = r
	}
	end()
	return parts
}

// plainValues are no secrets.
var plainValues = words(`true false yes no on off null none nil undefined basic digest bearer negotiate ntlm any auto
	always never prompt ask stdin - string str int number bytes bool boolean`)

// isPlain reports whether a value is none of a secret although its name looks
// so: a working directory, a number of tokens, or what a shell expands.
func isPlain(name, value string) bool {
	name = strings.ToLower(strings.TrimLeft(name, "-"))
	value = strings.Trim(value, `"'`)
	switch {
	case value == "" || value == redacted || plainValues.has(strings.ToLower(value)) || isExpanded(value):
		return true
	case name == "pwd" || name == "oldpwd":
		return strings.HasPrefix(value, "/")
	case strings.HasSuffix(name, "tokens"):
		return len(value) <= 7 && strings.Trim(value, "0123456789.kKmM") == ""
	case strings.HasSuffix(name, "key"), strings.HasSuffix(name, "credentials"), strings.HasSuffix(name, "cookie"):
		return isPath(value) && !strings.Contains(name, "secret") || isPlaceholder(value)
	case name == "secret": // of a build: docker build --secret id=x,src=file
		return strings.HasPrefix(value, "id=") || strings.HasPrefix(value, "type=")
	}
	if isPlaceholder(value) {
		return true
	}
	for _, prefix := range []string{"env:", "file:", "fd:"} { // openssl -passin env:NAME
		if strings.HasPrefix(value, prefix) && !strings.Contains(value, "=") {
			return true
		}
	}
	return false
}

// isPlaceholder reports whether a value only names what belongs there, as in
// "usage: app --token TOKEN".
func isPlaceholder(value string) bool {
	return strings.Trim(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" && meaningOf(value) >= weak
}

// isPath reports whether a value looks like the path of a file.
func isPath(value string) bool {
	for _, prefix := range []string{"/", "~/", "./", "../", `C:\`} {
		if strings.HasPrefix(value, prefix) {
			return true
		}
	}
	for _, suffix := range []string{".pem", ".key", ".crt", ".json", ".txt", ".pub", ".p12", ".pfx", ".gpg", ".asc"} {
		if strings.HasSuffix(value, suffix) {
			return true
		}
	}
	return false
}

// isExpanded reports whether a value is only what a shell puts in its place:
// $NAME, ${NAME} or $(command).
func isExpanded(value string) bool {
	if name, is := strings.CutPrefix(value, "$"); is {
		inner, braced := strings.CutPrefix(name, "{")
		if braced {
			name = strings.TrimSuffix(inner, "}")
		}
		return name != "" && strings.IndexFunc(name, func(r rune) bool {
			return r != '_' && (r >= 0x80 || !isNameByte(byte(r)))
		}) < 0
	}
	if strings.HasPrefix(value, "{{") || strings.HasPrefix(value, "${{") { // of a template
		return strings.HasSuffix(value, "}}")
	}
	if !strings.HasPrefix(value, mark) {
		return false
	}
	parts := strings.Split(value, mark)
	for i := 0; i < len(parts); i += 2 {
		if parts[i] != "" {
			return false
		}
	}
	return true
}

// looksRandom reports whether a value could be a key by its looks alone.
func looksRandom(value string) bool {
	const least = 16
	digits, letters := 0, 0
	for _, r := range value {
		switch {
		case '0' <= r && r <= '9':
			digits++
		case unicode.IsLetter(r):
			letters++
		case strings.ContainsRune("_+=-", r):
		default:
			return false
		}
	}
	return len(value) >= least && digits > 1 && letters > 1
}
