//go:build unix

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/meeting"
	"github.com/sandbox-sidecar/sandbox-sidecar/control"
)

// kept says where a shared sandbox is. Its JSON is what processes leave where they
// meet.
type kept struct {
	Socket  string `json:"socket"`
	Sandbox string `json:"sandbox"`
	// Began is when it was made, in nanoseconds since 1970.
	Began int64    `json:"began"`
	Like  likeness `json:"like"`
	// Ended says why it has ended, though its agent lives; "" if it has not, or if
	// its keeper could not say so.
	Ended ended `json:"ended,omitempty"`

	used time.Time // when a command has begun or ended there last
}

// namesSandbox reports whether a text of a place names a sandbox that may run.
func namesSandbox(text string) bool {
	var at kept
	return json.Unmarshal([]byte(text), &at) == nil && at.Ended == ""
}

// ended is why a shared sandbox has ended.
type ended string

const (
	endedIdle    ended = "idle"    // nothing ran in it for an hour
	endedRetired ended = "retired" // a newer one has other settings, and nothing ran in it
	endedSilent  ended = "silent"  // nothing more could be started in it
	endedSurplus ended = "surplus" // its agent has used mostKept others since, and nothing ran in it
	endedOther   ended = "other"
)

// likeness is what commands must have in common to share a sandbox. Each field is a
// digest.
type likeness struct {
	Program, Project, Policy, Audit, Around, Circumstances string
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// hasOtherSettings reports whether nothing but the policy, what is around it, the
// audit trail or the program's version is another. Then one sandbox takes the place
// of the other.
func (l likeness) hasOtherSettings(other likeness) bool {
	return l != other && l.Project == other.Project && l.Circumstances == other.Circumstances
}

// leftAt is what the keepers of an agent have left. What cannot be read is left out.
func leftAt(place meeting.Place) []kept {
	var list []kept
	for _, left := range place.Left() {
		one := kept{used: left.Used}
		if json.Unmarshal([]byte(left.Text), &one) == nil {
			list = append(list, one)
		}
	}
	return list
}

// whyNew says why a command gets a new sandbox, given those that its agent has had;
// "" if it had none.
func whyNew(before []kept, like likeness) string {
	if len(before) == 0 {
		return ""
	}
	near := func(one kept) int {
		switch {
		case one.Like == like:
			return 2
		case one.Like.Project == like.Project:
			return 1
		}
		return 0
	}
	old := slices.MaxFunc(before, func(a, b kept) int {
		return cmp.Or(cmp.Compare(near(a), near(b)), cmp.Compare(a.Began, b.Began))
	})
	was := old.Like
	switch {
	case was == like && old.Ended == endedIdle:
		return "nothing ran for an hour"
	case was == like && old.Ended == endedRetired:
		return "other settings came since"
	case was == like && old.Ended == endedSurplus:
		return fmt.Sprintf("the agent has used %d others since", mostKept)
	case was == like && old.Ended == endedSilent:
		return "the old one did not answer"
	case was == like:
		return "the old one has ended"
	case was.Project != like.Project:
		return "this is another project"
	case was.Policy != like.Policy:
		return "the settings, or what they protect here, have changed"
	case was.Around != like.Around:
		return "a path or agent has changed"
	case was.Audit != like.Audit:
		return "the audit trail has changed"
	case was.Program != like.Program:
		return "this program was updated"
	}
	return "its limits or rights are others"
}

// retireOlder has the older sandboxes of the agent that differ only in their
// settings end once nothing runs in them. One whose keeper does not answer ends with
// the agent.
func retireOlder(place meeting.Place, this kept) {
	for _, other := range leftAt(place) {
		if other.Ended == "" && other.Began < this.Began && other.Like.hasOtherSettings(this.Like) {
			_ = control.At(place.StateDir(), other.Socket).Retire(other.Sandbox)
		}
	}
}

// mostKept is how many of an agent's sandboxes are kept though nothing runs in them.
// An agent that works in each directory of a large project has one for each.
const mostKept = 16

// endSurplus ends those sandboxes of an agent in which nothing runs, but for the
// ones that it has used last. Those count whether something runs in them or not, so
// that one which was just used is never among the others.
func endSurplus(place meeting.Place, this kept) {
	for _, one := range surplus(leftAt(place), this) {
		_ = control.At(place.StateDir(), one.Socket).EndIdle(one.Sandbox) // it may be busy, or gone
	}
}

// surplus are the sandboxes of an agent that are not among the mostKept that it has
// used last. this has just been made.
func surplus(all []kept, this kept) []kept {
	others := slices.DeleteFunc(all, func(one kept) bool {
		return one.Ended != "" || one.Socket == this.Socket
	})
	slices.SortFunc(others, func(a, b kept) int { return b.used.Compare(a.used) })
	return others[min(len(others), mostKept-1):]
}
