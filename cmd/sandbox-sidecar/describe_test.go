//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// exec names each lost grant. A link, whose user reads the command's own output,
// does so in one line.
func TestPrintLost(t *testing.T) {
	t.Parallel()
	from := policy.Origin{File: policy.OriginCommand, Key: "k"}
	outcome := spawn.Outcome{Confined: true, Lost: []spawn.LostGrant{
		{Path: "/a", Reason: "because", Origin: from}, {Path: "/b", Reason: "because", Origin: from},
	}}
	first := fmt.Sprintf(`sandbox-sidecar: warning: the grant of "/a", from %s, is lost: because; `, from)
	second := fmt.Sprintf(`the grant of "/b", from %s, is lost: `, from)
	var whole, brief, none strings.Builder
	printLost(&whole, outcome, false)
	printLost(&brief, outcome, true)
	printLost(&none, spawn.Outcome{Confined: true}, true)
	if got := whole.String(); !strings.HasPrefix(got, first) || !strings.Contains(got, second) ||
		strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
	if got := brief.String(); !strings.HasPrefix(got, first) || !strings.HasSuffix(got, " (and 1 more)\n") ||
		strings.Count(got, "\n") != 1 {
		t.Errorf("briefly: %q", got)
	}
	if got := none.String(); got != "" {
		t.Errorf("nothing is lost: %q", got)
	}
}

// However many protected paths a command changes, a few lines say so. What no line
// says is counted.
func TestListChanges_IsShort(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]int{1: 1, mostListed: mostListed, mostListed + 5: mostListed + 1} {
		var alarms []spawn.Alarm
		for range count {
			alarms = append(alarms, spawn.Alarm{Path: "/p/" + strings.Repeat("x", len(alarms)+1), Kind: "changed"})
		}
		var out strings.Builder
		listChanges(&out, alarms, nil)
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("%d alarms: %d lines: %s", count, got, &out)
		}
		if more := strings.Contains(out.String(), "and 5 more"); more != (count > mostListed) {
			t.Errorf("%d alarms: %s", count, &out)
		}
	}
}
