package spawn

import "github.com/google/uuid"

// NewID returns a random UUID (version 4, RFC 9562) for a session.
func NewID() string { return uuid.NewString() }

// IsID reports whether a text is a UUID, as NewID writes them; of any version
// and in any case. uuid.Validate also accepts three other forms, all of another
// length.
func IsID(text string) bool { return len(text) == 36 && uuid.Validate(text) == nil }
