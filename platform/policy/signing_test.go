package policy

import (
	"slices"
	"strings"
	"testing"
)

const (
	keyA  = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"
	keyB  = "SHA256:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0"
	gripC = "5C9E027F6F534FF59047F3F6B7E676A7B9EF8BA6"
)

func TestParseSigningKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]SigningKey{
		keyA: {Key: keyA}, "ask:" + keyA: {Key: keyA, Ask: true}, "*": {Key: "*"}, "ask:*": {Key: "*", Ask: true},
		gripC: {Key: gripC}, strings.ToLower(gripC): {Key: gripC}, "ask:" + gripC: {Key: gripC, Ask: true},
	} {
		got, err := ParseSigningKey(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := ParseSigningKey(got.String()); err != nil || again != got {
			t.Errorf("%q: written as %q", text, got)
		}
	}
	// No other spelling stands for a key, and nothing else for all of them.
	for _, text := range []string{
		"", "ask:", "ask", "ask:ask:*", "**", " *", "* ", "SHA256:", "SHA256:*", keyA + "=", keyA[:len(keyA)-1],
		keyA[:len(keyA)-1] + "V", "sha256:" + keyA[7:], "MD5:d4:1d:8c:d9:8f:00:b2:04:e9:80:09:98:ec:f8:42:7e",
		gripC[:39],
		gripC + "00", "0x" + gripC[2:], "ASK:*", keyA[:20] + "\n" + keyA[20:], "me@example.com", "*\x00",
	} {
		if got, err := ParseSigningKey(text); err == nil {
			t.Errorf("%q stands for %+v", text, got)
		}
	}
}

func keys(t *testing.T, texts ...string) []SigningKey {
	t.Helper()
	var list []SigningKey
	for _, text := range texts {
		k, err := ParseSigningKey(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, k)
	}
	return list
}

func TestMeetSigningKeys(t *testing.T) {
	t.Parallel()
	lists := [][]string{
		{},
		{"*"},
		{"ask:*"},
		{keyA},
		{"ask:" + keyA},
		{"*", "ask:" + keyA},
		{"ask:*", keyA},
		{keyA, keyB},
		{keyA, "ask:" + keyA},
		{gripC, "ask:" + keyB},
	}
	level := func(list []SigningKey, key string) int {
		switch k, ok := FindSigningKey(list, key); {
		case !ok:
			return 0
		case k.Ask:
			return 1
		}
		return 2
	}
	for _, a := range lists {
		for _, b := range lists {
			first, second := keys(t, a...), keys(t, b...)
			met := MeetSigningKeys(first, second)
			for _, key := range []string{keyA, keyB, gripC, "another"} {
				if got, want := level(met, key), min(level(first, key), level(second, key)); got != want {
					t.Errorf("%q and %q: %s is %d, not %d: %v", a, b, key, got, want, met)
				}
			}
		}
	}
	if slices.ContainsFunc(lists[2:], func(l []string) bool { return !ChoosesKeys(keys(t, l...)) }) ||
		!ChoosesKeys(nil) ||
		ChoosesKeys(keys(t, "*")) {
		t.Error("which lists choose keys")
	}
}
