//go:build unix

package roles_test

import (
	"bytes"
	"errors"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// TestStage_StartsBeforeTheSidecarIsInitialised tests the reason for this
// package. Without a socket the stage ends at once.
func TestStage_StartsBeforeTheSidecarIsInitialised(t *testing.T) {
	t.Parallel()
	const settings = "init github.com/sandbox-sidecar/sandbox-sidecar/settings "
	if trace := initialised(t, "version"); !strings.Contains(trace, settings) {
		t.Fatalf("the trace does not show what the whole program initialises:\n%s", trace)
	}
	trace := initialised(t, "stage")
	if strings.Contains(trace, settings) || !strings.Contains(trace, "init syscall ") {
		t.Errorf("the stage waits for packages of the sidecar:\n%s", trace)
	}
}

// Go initialises some packages before the stage that it does not need. None of ours
// makes a table there, which each process of a session would pay for: what allocates
// is made when it is first asked for, by sync.OnceValue. Only the table of protected
// names is a plain variable.
func TestStage_PaysForNoTables(t *testing.T) {
	t.Parallel()
	const most = 8 << 10 // bytes that one package allocates
	const plain = "github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
	ours := regexp.MustCompile(`(?m)^init (github\.com/sandbox-sidecar/\S+) @.* (\d+) bytes, \d+ allocs$`)
	found := ours.FindAllStringSubmatch(initialised(t, "stage"), -1)
	allocates := false
	for _, one := range found {
		size, err := strconv.Atoi(one[2])
		if err != nil {
			t.Fatal(err)
		}
		allocates = allocates || size > 0
		if size > most && one[1] != plain {
			t.Errorf("%s allocates %d bytes when a stage starts, want at most %d", one[1], size, most)
		}
	}
	if !allocates {
		t.Errorf("control: the trace does not show what is allocated: %q", found)
	}
}

// initialised is what Go's runtime initialises for a command.
func initialised(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.Command(harness.Binary(t), args...)
	command.Env = []string{"GODEBUG=inittrace=1"}
	var trace bytes.Buffer
	command.Stderr = &trace
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return trace.String()
}

func TestMain(m *testing.M) { harness.Main(m) }
