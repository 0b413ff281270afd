//go:build unix

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

// An answer that is none of the choices is said to be none before they are asked
// again.
func TestInit_SaysWhatIsNoChoice(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{"maybe\n1\n": `"maybe" is no choice: type 1, 2 or 3`, "1\n": ""} {
		var said bytes.Buffer
		chosen, ok := askWhat(strings.NewReader(typed), &said, false, "")
		if !ok || chosen != settings.ApplyToBoth || strings.Contains(said.String(), "is no choice") != (want != "") ||
			!strings.Contains(said.String(), want) {
			t.Errorf("%q: %q, %t: %s", typed, chosen, ok, said.String())
		}
	}
}
