// Package placeholder makes what a session has in the place of a secret: a random
// text of the same form, which opens nothing.
//
// Programs look at the form of a key before they send it: its length, its prefix,
// its alphabet, the claims of a JSON Web Token. A placeholder keeps these. See
// docs/design/credentials.md.
package placeholder

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

const (
	// Shortest is the length in bytes of the shortest secret. The placeholder of a
	// shorter one would stand in other text by chance.
	Shortest = 8
	// Longest is the length in bytes of the longest secret. Servers accept headers
	// of 8 to 64 KiB.
	Longest = 16 << 10
	// leastBits is how many random bits a placeholder has at least. Eight digits
	// have 26.
	leastBits = 24
)

// Why a secret has no placeholder.
var (
	// ErrShort: its placeholder would be found in other text by chance.
	ErrShort = fmt.Errorf("shorter than %d bytes: its placeholder would be found in other text by chance", Shortest)
	// ErrLong: no server takes a header of that length.
	ErrLong = fmt.Errorf("longer than %d KiB: no server takes such a header", Longest>>10)
	// ErrForm: no header takes one of its characters.
	ErrForm = errors.New("holds a space, a line break or another character that no header takes")
	// ErrRegular: its placeholder could be guessed.
	ErrRegular = errors.New("has too few letters and digits: its placeholder could be guessed")
)

// Of makes a placeholder for a secret: of the same length and form, and different
// each time.
func Of(secret string) (string, error) {
	if err := check(secret); err != nil {
		return "", err
	}
	if made := ofToken(secret); made != "" {
		return made, nil
	}
	fixed := len(prefixOf(secret))
	return fill(secret[:fixed], secret[fixed:])
}

// InURL makes a placeholder for a secret in an address, where it takes so many
// bytes. It has letters and digits alone, which are written there as they are.
func InURL(secret string, length int) (string, error) {
	if err := check(secret); err != nil {
		return "", err
	}
	if length < Shortest {
		return "", ErrShort
	}
	if fixed := prefixOf(secret); length == len(secret) && isPlain(fixed) {
		secret = fixed + strings.Map(plain, secret[len(fixed):])
		return fill(fixed, secret[len(fixed):])
	}
	return fill("", strings.Repeat("x", length))
}

func check(secret string) error {
	switch {
	case len(secret) < Shortest:
		return ErrShort
	case len(secret) > Longest:
		return ErrLong
	case strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return ErrForm
	}
	return nil
}

// fill makes what follows a fixed beginning.
func fill(fixed, like string) (string, error) {
	classes := classesOf(like)
	bits := 0.0
	for _, class := range classes {
		bits += math.Log2(float64(max(1, len(class))))
	}
	if bits < leastBits {
		return "", ErrRegular
	}
	for {
		var made strings.Builder
		made.WriteString(fixed)
		for i, class := range classes {
			if class == "" {
				made.WriteByte(like[i])
				continue
			}
			made.WriteByte(class[number(len(class))])
		}
		if text := made.String(); text != fixed+like {
			return text, nil
		}
	}
}

const (
	digits  = "0123456789"
	small   = "abcdefghijklmnopqrstuvwxyz"
	capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	hexes   = digits + "abcdef"
	hexUp   = digits + "ABCDEF"
)

// classesOf are the characters that may stand in each place; "" where the character
// stays.
func classesOf(like string) []string {
	classes := make([]string, len(like))
	for _, whole := range []string{digits, hexes, hexUp} {
		if len(like) >= Shortest && strings.Trim(like, whole+"-") == "" {
			for i := range like {
				if like[i] != '-' {
					classes[i] = whole
				}
			}
			return classes
		}
	}
	for i := range like {
		for _, class := range []string{digits, small, capital} {
			if strings.IndexByte(class, like[i]) >= 0 {
				classes[i] = class
			}
		}
	}
	return classes
}

// beginnings are those of keys that end in no mark.
var beginnings = []string{"AKIA", "ASIA", "AIza", "ya29.", "eyJ"}

// prefixOf is the beginning of a secret by which programs know its kind, such as
// "ghp_" or "sk-ant-api03-": words of letters and digits, each with a mark behind
// it. At least half of the secret follows.
func prefixOf(secret string) string {
	for _, known := range beginnings {
		if strings.HasPrefix(secret, known) {
			return known
		}
	}
	const longestWord = 8
	end := 0
	for {
		mark := strings.IndexAny(secret[end:], "_-")
		if mark <= 0 || mark > longestWord || 2*(end+mark+1) > len(secret) || strings.Trim(secret[end:end+mark],
			digits+small+capital) != "" {
			return secret[:end]
		}
		if word := secret[end : end+mark]; strings.Trim(word, hexes) == "" && len(word) == longestWord {
			return secret[:end] // the beginning of a UUID
		}
		end += mark + 1
	}
}

// ofToken is the placeholder of a JSON Web Token (RFC 7519): its claims with
// another signature. It is "" if the secret is none.
func ofToken(secret string) string {
	parts := strings.Split(secret, ".")
	if len(parts) != 3 {
		return ""
	}
	for _, part := range parts[:2] {
		var object map[string]json.RawMessage
		data, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || json.Unmarshal(data, &object) != nil {
			return ""
		}
	}
	const leastSignature = 8
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(signature) < leastSignature {
		return ""
	}
	_, _ = rand.Read(signature) // which never fails
	return parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func isPlain(text string) bool { return strings.Trim(text, digits+small+capital+"_-") == "" }

// plain puts a letter in the place of what an address has to escape.
func plain(r rune) rune {
	if strings.ContainsRune(digits+small+capital, r) {
		return r
	}
	return 'x'
}

// number is a random number below a limit.
func number(limit int) int {
	n, err := rand.Int(rand.Reader, big.NewInt(int64(limit)))
	if err != nil {
		panic("BUG(sandbox-sidecar): no random number: " + err.Error()) // crypto/rand ends the process itself
	}
	return int(n.Int64())
}
