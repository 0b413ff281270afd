package spawn

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

// The library is left to the tests: its imports are initialised in every stage
// too.
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

func TestIsID_AgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
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
		if want := len(text) == 36 && uuid.Validate(text) == nil; IsID(text) != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
}
