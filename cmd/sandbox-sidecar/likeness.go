//go:build unix

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

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
	for _, text := range place.Left() {
		var one kept
		if json.Unmarshal([]byte(text), &one) == nil {
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

// The bounds of the sandboxes that one agent's commands have at the same time: of
// those whose last command has ended, and of all.
const (
	mostResting = 16
	mostLiving  = 64
)

// retireMost makes room for one more sandbox of an agent that has many, as one that
// works in each package of a large project: the oldest end once nothing runs there.
func retireMost(place meeting.Place, before []kept) error {
	before = slices.DeleteFunc(slices.Clone(before), func(one kept) bool { return one.Ended != "" })
	slices.SortFunc(before, func(a, b kept) int { return cmp.Compare(b.Began, a.Began) })
	living := mostResting
	for _, old := range before[min(len(before), mostResting-1):] {
		// A keeper that was killed does not answer.
		if control.At(place.StateDir(), old.Socket).Retire(old.Sandbox) == nil {
			living++
		}
	}
	if living >= mostLiving {
		return fmt.Errorf("programs run in %d sandboxes of it already", living)
	}
	return nil
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
