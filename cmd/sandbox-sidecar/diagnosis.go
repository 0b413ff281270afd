package main

import (
	"encoding/json"
	"io"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// diagnosis is the output of "doctor --json": the protections that this machine
// claims to have, and the results of attacks on them.
type diagnosis struct {
	Protections []diagnosed `json:"protections"`
}

// diagnosed is one protection.
type diagnosed struct {
	Name string `json:"name"`
	platform.Protection
	Attacks []tried `json:"attacks"`
}

// tried is an attack on a protection. Unsandboxed and Session are "works", or
// the kernel's error.
type tried struct {
	Attack      string `json:"attack"`
	Unsandboxed string `json:"unsandboxed"`
	Session     string `json:"session"`
	// Status is the session's own, which can differ from the machine's.
	Status  platform.Status `json:"status"`
	Verdict verdict         `json:"verdict"`
}

// diagnose joins claims and findings, in the order of the reference.
func diagnose(protections spawn.Protections, findings []finding) diagnosis {
	whole := diagnosis{Protections: []diagnosed{}}
	for _, name := range platform.Protections {
		one := diagnosed{Name: name, Protection: protections[name], Attacks: []tried{}}
		one.PreventsChanges = false // for this program only; the detail says it
		for _, f := range findings {
			if f.protection == name {
				one.Attacks = append(one.Attacks, tried{f.attack, f.control, f.session, f.status, f.verdict()})
			}
		}
		whole.Protections = append(whole.Protections, one)
	}
	return whole
}

func (d diagnosis) print(w io.Writer) error {
	encoder := json.NewEncoder(display.JSONWriter(w))
	encoder.SetIndent("", "  ")
	return encoder.Encode(d)
}
