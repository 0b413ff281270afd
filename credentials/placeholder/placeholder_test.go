package placeholder

import (
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestOf_KeepsTheForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ secret, form string }{
		{"ghp_A1b2C3d4E5f6A1b2C3d4E5f6A1b2C3d4E5f6", `^ghp_([A-Z]\d[a-z]\d){9}$`},
		{"github_pat_11ABCDEFG0aaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbb", `^github_pat_\d\d[A-Z]{7}\d[a-z]{12}_[a-z]{28}$`},
		{"sk-ant-api03-abcdefghijklmnopqrstuvwxyz", `^sk-ant-api03-[a-z]{26}$`},
		{"sk-proj-Abcdefghijklmnop", `^sk-proj-[A-Z][a-z]{15}$`},
		{"glpat-abcdefghij0123456789", `^glpat-[a-z]{10}\d{10}$`},
		{"npm_abcdefghij0123456789", `^npm_[a-z]{10}\d{10}$`},
		{"AKIAABCDEFGHIJKLMNOP", `^AKIA[A-Z]{16}$`},
		{"0123456789abcdef0123456789abcdef", `^[0-9a-f]{32}$`},
		{"0123456789ABCDEF", `^[0-9A-F]{16}$`},
		{"01234567-89ab-cdef-0123-456789abcdef", `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`},
		{"12345678", `^\d{8}$`},
		{"p@ss/word+and=more", `^[a-z]@[a-z]{2}/[a-z]{4}\+[a-z]{3}=[a-z]{4}$`},
	} {
		made, err := Of(c.secret)
		if err != nil || !regexp.MustCompile(c.form).MatchString(made) || made == c.secret {
			t.Errorf("%s: %q, %v, want %s", c.secret, made, err, c.form)
		}
		if again, _ := Of(c.secret); again == made {
			t.Errorf("%s: twice %q", c.secret, made)
		}
	}
}

func TestOf_ATokenKeepsItsClaims(t *testing.T) {
	t.Parallel()
	encode := base64.RawURLEncoding.EncodeToString
	claims := encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(`{"sub":"me","exp":99}`)) + "."
	secret := claims + encode([]byte(strings.Repeat("s", 256)))
	made, err := Of(secret)
	if err != nil || !strings.HasPrefix(made, claims) || len(made) != len(secret) || made == secret {
		t.Errorf("%q, %v", made, err)
	}
	if _, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(made, claims)); err != nil {
		t.Error(err)
	}
	// What signs nothing is a secret as a whole.
	for _, signature := range []string{"", encode([]byte("short"))} {
		if made, err := Of(claims + signature); err != nil || strings.HasPrefix(made, claims) {
			t.Errorf("signature %q: %q, %v", signature, made, err)
		}
	}
}

func TestOf_RefusesWhatHasNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		secret string
		want   error
	}{
		{"", ErrShort},
		{"x", ErrShort},
		{"1234567", ErrShort},
		{strings.Repeat("x", Longest+1), ErrLong},
		{strings.Repeat("x", 64<<10), ErrLong},
		{"two\nlines of text", ErrForm},
		{"two words", ErrForm},
		{"zero\x00byte", ErrForm},
		{"schlüssel-x", ErrForm},
		{"----------", ErrRegular},
		{"#########1", ErrRegular},
	} {
		if made, err := Of(c.secret); !errors.Is(err, c.want) || made != "" {
			t.Errorf("%.20q: %q, %v, want %v", c.secret, made, err, c.want)
		}
		if made, err := InURL(c.secret, 20); !errors.Is(c.want, ErrRegular) && !errors.Is(err, c.want) {
			t.Errorf("%.20q in an address: %q, %v, want %v", c.secret, made, err, c.want)
		}
	}
	if made, err := Of(strings.Repeat("x", Longest)); err != nil || len(made) != Longest {
		t.Errorf("the longest: %d bytes, %v", len(made), err)
	}
}

func TestInURL_HasNothingToEscape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		secret string
		length int
		form   string
	}{
		{"ghp_A1b2C3d4E5f6A1b2", 20, `^ghp_[A-Za-z0-9]{16}$`},
		{"p@ss/word+and=more", 18, `^[a-z]{18}$`},
		{"p@ss/word+and=more", 26, `^[a-z]{26}$`}, // as p%40ss%2Fword…
	} {
		made, err := InURL(c.secret, c.length)
		if err != nil || !regexp.MustCompile(c.form).MatchString(made) {
			t.Errorf("%s: %q, %v", c.secret, made, err)
		}
	}
	if made, err := InURL("long-enough", 7); !errors.Is(err, ErrShort) {
		t.Errorf("%q, %v", made, err)
	}
}

// Whatever a secret is: its placeholder has its length, is another, and holds no
// long part of it where that differs by chance.
func FuzzOf(f *testing.F) {
	for _, secret := range []string{
		"ghp_A1b2C3d4E5f6", "a.b.c.d.e.f", "eyJhbGciOiJub25lIn0.e30.", "____________", "sk--------x",
	} {
		f.Add(secret)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		made, err := Of(secret)
		if err != nil {
			return
		}
		if len(made) != len(secret) || made == secret {
			t.Errorf("%q: %q", secret, made)
		}
		if err := check(made); err != nil {
			t.Errorf("%q: %q: %v", secret, made, err)
		}
	})
}
