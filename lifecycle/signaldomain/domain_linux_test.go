package signaldomain

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// A domain killer without a report has ended, mostly as it got no thread.
func TestConfirm_SaysThatTheDomainKillerHasEnded(t *testing.T) {
	t.Parallel()
	for report, ended := range map[string]bool{"": true, "kill: operation not permitted": false} {
		ready, theirs, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := theirs.WriteString(report); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		err = (&Domain{domainKiller: os.Getpid(), ready: ready}).Confirm()
		if err == nil || errors.Is(err, errEnded) != ended || !ended && !strings.Contains(err.Error(), report) {
			t.Errorf("report %q: %v", report, err)
		}
	}
}
