package spawn

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestNewID_IsAUUID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		id := NewID()
		parsed, err := uuid.Parse(id)
		if err != nil || parsed.Version() != 4 || parsed.Variant() != uuid.RFC4122 || !IsID(id) || seen[id] {
			t.Fatalf("%s: %v, seen %t", id, err, seen[id])
		}
		seen[id] = true
	}
}

// The library knows other forms of a UUID. An id has one.
func TestIsID_TakesOneForm(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`\A[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\z`)
	id := NewID()
	texts := []string{
		"", id, strings.ToUpper(id), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + "0",
	}
	for i := range id {
		for _, c := range []string{"-", "g", "0", "/", "\x00", ":", "@", "`", "é"} {
			texts = append(texts, id[:i]+c+id[i+1:])
		}
	}
	for _, text := range texts {
		if want := form.MatchString(text); IsID(text) != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
}
