// Package toolchain is the table of the named toolchains: the paths and variables
// that the tools of a language need beside the system's own.
//
// [All] is the table, [Find] looks a name up.
package toolchain

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// All are all sets, those of languages first.
var All = slices.Concat(languages, keys, agents)

// Toolchain is a named set of places and variables that a language's tools need
// beside the system's own.
type Toolchain struct {
	// Name is the word in the setting.
	Name string
	// About is one sentence for the reference.
	About string
	// Agent is true for a set that opens what an agent signs in with. Nothing
	// suggests one: any program can call itself by the agent's name.
	Agent     bool
	Places    []Place
	Variables []Variable
	// Keys is the agent whose keys the tools use; "" if there is none.
	Keys policy.Agent
}

// Place is a directory or a file that tools need.
type Place struct {
	// Variable moves the place: if it is set, its value replaces At. The value
	// may be a list of directories. Each needs a Proof.
	Variable string
	// At is the usual place, as in a settings file; "" if there is none without
	// the variable. A * in the last name stands for any characters.
	At string
	// Below is a name below either.
	Below string
	// Access is what sessions may do there.
	Access policy.Access
	// Platform is the only one that has the place; "" for all.
	Platform string
	// Create makes the directory before a session starts. The tools cannot make
	// it themselves, because only what exists can be granted.
	Create bool
	// OnlyIfThere says why a place that sessions may write is not made. All others
	// are: on a new machine the first use of a tool would fail.
	OnlyIfThere string
	// Shared says why sessions may write here what programs outside use. If it is
	// empty and sessions may write the place, it is a cache: what they write is
	// kept from programs outside.
	Shared string
	// AlwaysPrivate is true for a cache that is never shared: sessions can only
	// read it if it cannot be private.
	AlwaysPrivate bool
	// Hidden is true for a cache in which sessions must not see what programs
	// outside have written.
	Hidden bool
	// Public is true for files next to private keys. One that holds a private
	// key is not granted.
	Public bool
	// SSHConfig is true for a configuration of ssh. The public files that it
	// names are granted, too.
	SSHConfig bool
	// Why says what is there.
	Why string
	// Line is where a file of the user's names the place; 0 if none does.
	Line int
}

// In is the place for a value of its variable, which may be empty. A list of
// directories stands for the first.
func (p Place) In(value, home string) string {
	dir := p.At
	if list := filepath.SplitList(value); len(list) > 0 {
		dir = list[0]
	}
	if rest, below := strings.CutPrefix(dir, "~/"); below {
		dir = filepath.Join(home, rest)
	}
	return filepath.Join(dir, p.Below)
}

// Cache reports whether what sessions write here is kept from programs outside.
func (p Place) Cache() bool { return p.Access.Has(policy.Write) && p.Shared == "" }

// SSH is the name of the set that lets sessions use ssh.
const SSH = "ssh"

// Variable is an environment variable that tools read.
type Variable struct{ Name, Why string }

// Path is the usual place for people: "~/.cargo/bin", or "$CARGO_HOME/bin" if
// there is no other.
func (p Place) Path() string {
	if p.At == "" {
		return filepath.Join("$"+p.Variable, p.Below)
	}
	return filepath.Join(p.At, p.Below)
}

// Find returns the toolchain of a name.
func Find(name string) (Toolchain, bool) {
	i := slices.IndexFunc(All, func(t Toolchain) bool { return t.Name == name })
	if i < 0 {
		return Toolchain{}, false
	}
	return All[i], true
}

// Names lists the names of all sets.
func Names() []string { return namesOf(All) }

// Languages lists the names of the sets that open nothing that an agent signs
// in with.
func Languages() []string { return namesOf(slices.Concat(languages, keys)) }

func namesOf(list []Toolchain) []string {
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	return names
}

// programs maps the process names of tools to toolchains. Version numbers at
// the end of a name are ignored.
var programs = map[string]string{
	"go": "go", "cargo": "rust", "rustc": "rust", "rustup": "rust", "node": "node", "npm": "node", "npx": "node",
	"yarn": "node", "pnpm": "node",
	"MainThread": "node", "python": "python", "pip": "python", "pytest": "python", "uv": "python", "poetry": "python",
	"java": "java", "mvn": "java",
	"gradle": "java", "ruby": "ruby", "gem": "ruby", "bundle": "ruby", "dotnet": "dotnet", "php": "php",
	"composer": "php", "ccache": "c", "sccache": "c", "gcc": "c", "cc": "c", "g++": "c", "c++": "c", "clang": "c",
	"clang++": "c", "vcpkg": "c", "corepack": "node", "node-gyp": "node", "nix": "nix", "ssh": "ssh", "scp": "ssh",
	"sftp": "ssh", "gpg": "gpg",
}

// OfProgram returns the toolchain that a process belongs to, or "". It reads
// only the first word of the name, because some processes keep no more.
func OfProgram(name string) string {
	word, _, _ := strings.Cut(name, " ")
	return programs[strings.TrimRight(word, "0123456789.-")]
}

const readExecute = policy.Read | policy.Execute
