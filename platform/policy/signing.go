package policy

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
)

// SigningKey is a key of an agent that the session may use. It is compared with
// what a filter finds in a request, so the form is always the same.
type SigningKey struct {
	// Key is the fingerprint of a key of ssh, "SHA256:…", the keygrip of a key
	// of GnuPG, 40 hexadecimal digits in capitals, or AllKeys.
	Key string `json:"key"`
	// Ask: each use is a question.
	Ask    bool   `json:"ask,omitempty"`
	Origin Origin `json:"origin"`
}

// AllKeys stands for every key of every agent.
const AllKeys = "*"

const (
	askPrefix   = "ask:"
	sshPrefix   = "SHA256:"
	keygripSize = 20 // bytes
)

var errNoKey = errors.New(`expected "SHA256:…", a keygrip of 40 hexadecimal digits, or "*", with or without "ask:"`)

// ParseSigningKey reads an entry of signing_keys.
func ParseSigningKey(text string) (SigningKey, error) {
	key, ask := strings.CutPrefix(text, askPrefix)
	if sum, is := strings.CutPrefix(key, sshPrefix); is {
		// Strictly: two spellings of one fingerprint would be two keys.
		if raw, err := base64.RawStdEncoding.Strict().DecodeString(sum); err != nil || len(raw) != 32 ||
			strings.ContainsAny(sum, "\r\n") {
			return SigningKey{}, errNoKey
		}
		return SigningKey{Key: key, Ask: ask}, nil
	}
	if raw, err := hex.DecodeString(key); err == nil && len(raw) == keygripSize {
		return SigningKey{Key: strings.ToUpper(key), Ask: ask}, nil
	}
	if key == AllKeys {
		return SigningKey{Key: key, Ask: ask}, nil
	}
	return SigningKey{}, errNoKey
}

// String is the entry that reads as the key.
func (k SigningKey) String() string {
	if k.Ask {
		return askPrefix + k.Key
	}
	return k.Key
}

// Agent is the agent that has keys of this form; "" for AllKeys.
func (k SigningKey) Agent() Agent {
	switch {
	case k.Key == AllKeys:
		return ""
	case strings.HasPrefix(k.Key, sshPrefix):
		return SSHAgent
	}
	return GPGAgent
}

// FindSigningKey returns the entry that decides about a key: its own, or the one
// for all. Of several, one that asks.
func FindSigningKey(list []SigningKey, key string) (found SigningKey, ok bool) {
	for _, k := range list {
		if k.Key != key && k.Key != AllKeys {
			continue
		}
		switch {
		case !ok, k.Key == key && found.Key != key, k.Key == found.Key && k.Ask:
			found, ok = k, true
		}
	}
	return found, ok
}

// MeetSigningKeys returns what both lists allow, and asks where one of them does.
// What differs from the first list has its entry of the second.
func MeetSigningKeys(first, second []SigningKey) []SigningKey {
	var met []SigningKey
	known, inOne, inOther := map[string]bool{}, SigningKeysOf(first), SigningKeysOf(second)
	for _, k := range slices.Concat(first, second, []SigningKey{{Key: AllKeys}}) {
		if known[k.Key] {
			continue
		}
		a, inFirst := inOne.Find(k.Key)
		b, inSecond := inOther.Find(k.Key)
		if !inFirst || !inSecond {
			continue
		}
		known[k.Key] = true
		both := SigningKey{Key: k.Key, Ask: a.Ask || b.Ask, Origin: a.Origin}
		if a.Key != k.Key || a.Ask != both.Ask {
			both.Origin = b.Origin
		}
		met = append(met, both)
	}
	return met
}

// SigningKeys are a list's entries by key: of several the one that counts.
type SigningKeys map[string]SigningKey

// SigningKeysOf makes a lookup of a list, for whoever asks about many keys.
func SigningKeysOf(list []SigningKey) SigningKeys {
	keys := SigningKeys{}
	for _, k := range list {
		if known, is := keys[k.Key]; !is || k.Ask && !known.Ask {
			keys[k.Key] = k
		}
	}
	return keys
}

// Find is FindSigningKey.
func (keys SigningKeys) Find(key string) (SigningKey, bool) {
	if found, is := keys[key]; is {
		return found, true
	}
	found, is := keys[AllKeys]
	return found, is
}

// ChoosesKeys reports whether a list is anything but all keys without a question.
func ChoosesKeys(list []SigningKey) bool {
	all, ok := FindSigningKey(list, AllKeys)
	return !ok || all.Ask || slices.ContainsFunc(list, func(k SigningKey) bool { return k.Ask })
}
