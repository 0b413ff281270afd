//go:build unix

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/refusals"
)

// mostOffered bounds the refusals that allow lists.
const mostOffered = 20

// list prints what sessions were refused, newest first, each with what would
// allow it.
func (a *allowing) list() error {
	if len(a.kept) == 0 {
		display.Fprintf(stdout, "no session of %s was refused anything in the last seven days\n", quoted(a.dir))
		return nil
	}
	offered, shown := 0, a.kept[:min(len(a.kept), mostOffered)]
	for _, refusal := range shown {
		display.Fprintf(stdout, "%3d  %s%s\n", refusal.Number, presentation.DenialLine(denialOf(refusal)),
			apart(refusal, shown))
		offer, _ := a.offer(refusal)
		if offer.proposal != nil {
			offered++
		}
		for _, line := range offer.lines() {
			display.Fprintf(stdout, "     %s\n", line)
		}
	}
	if more := len(a.kept) - mostOffered; more > 0 {
		display.Fprintf(stdout, "and %d older ones\n", more)
	}
	if offered > 0 {
		fmt.Fprintln(stdout, "To allow one: sandbox-sidecar allow NUMBER")
	}
	return nil
}

// apart says which sessions were refused what others were refused, too; "" if there
// are no others.
func apart(refusal refusals.Refusal, list []refusals.Refusal) string {
	if !slices.ContainsFunc(list, func(other refusals.Refusal) bool {
		return other.Number != refusal.Number && other.Target == refusal.Target
	}) {
		return ""
	}
	under := refusal.Kind
	if refusal.Under.Mode != "" {
		under += ", --mode " + refusal.Under.Mode
	}
	if refusal.Under.Agent != "" {
		under += ", agent " + refusal.Under.Agent
	}
	if refusal.Under.Network {
		under += ", --network"
	}
	return " (" + under + ")"
}

// listedRefusal is a refusal as "allow --json" prints it.
type listedRefusal struct {
	Number  int       `json:"number"`
	Access  string    `json:"access"`
	Target  string    `json:"target"`
	Process string    `json:"process,omitempty"`
	Kind    string    `json:"kind"`
	Count   int       `json:"count"`
	Last    time.Time `json:"last"`
	Message string    `json:"message"`
	// Setting and Value would allow it; "" if no setting is advised.
	Setting string `json:"setting,omitempty"`
	Value   string `json:"value,omitempty"`
	// Command writes that; "" if it would write nothing.
	Command string `json:"command,omitempty"`
	// Notes say why nothing is written, or what to be careful about.
	Notes []string `json:"notes"`
}

// listJSON prints all that is kept, newest first, for programs.
func (a *allowing) listJSON() error {
	list := []listedRefusal{}
	for _, refusal := range a.kept {
		offer, _ := a.offer(refusal)
		listed := listedRefusal{
			Number: refusal.Number, Access: string(refusal.Access), Target: refusal.Target, Process: refusal.Process,
			Kind: refusal.Kind, Count: refusal.Count, Last: refusal.Last,
			Message: presentation.DenialLine(denialOf(refusal)), Setting: offer.suggestion.Key,
			Value: offer.suggestion.Value, Notes: display.Lines(offer.notes()),
		}
		if offer.proposal != nil {
			listed.Command = fmt.Sprintf("sandbox-sidecar allow %d", refusal.Number)
		}
		list = append(list, listed)
	}
	return printJSON(list)
}
