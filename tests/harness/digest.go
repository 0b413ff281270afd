package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"testing"
)

// Digest is a file's SHA-256 in hexadecimal digits, as trust --digest takes it.
func Digest(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
