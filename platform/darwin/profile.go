package darwin

import (
	"fmt"
	"strings"
)

// Profile is what Seatbelt is given.
type Profile struct {
	// Text is in the profile language, SBPL. It is ASCII, and its shape depends
	// only on how many paths of which kind there are.
	Text string
	// Parameters are keys and values in turn, as sandbox_init_with_parameters
	// takes them.
	Parameters []string
}

// String renders the profile for people and golden files.
func (p Profile) String() string {
	var b strings.Builder
	b.WriteString(p.Text)
	for i := 0; i+1 < len(p.Parameters); i += 2 {
		fmt.Fprintf(&b, "%s = %q\n", p.Parameters[i], p.Parameters[i+1])
	}
	return b.String()
}

// Profile writes the profile. Of the rules on one operation the last that
// matches decides; the sections stand in an order in which refusals come after
// the grants that they cut into, and the fingerprint after everything.
//
// Two exceptions to "the last decides" have been measured: a rule without
// filter never beats one with, and a rule on a wildcard such as file-read* does
// not beat an earlier one on the very operation. So only the first line has no
// filter, but for operations that are wholly open, and refusals name the
// operations that grants name.
func (s Scene) Profile() Profile {
	w := &writer{}
	sections := restricted
	if s.TrackOnly {
		sections = trackOnly
	}
	w.text.WriteString("(version 1)\n")
	for _, section := range sections {
		w.line("\n; %s", section.name)
		section.write(w, &s)
	}
	return Profile{Text: w.text.String(), Parameters: w.parameters}
}

// section is a part of a profile.
type section struct {
	name  string
	write func(*writer, *Scene)
}

var restricted = []section{
	{"closed by default", closedByDefault},
	{"the session's own processes", ownProcesses},
	{"what programs ask at their start", startQuestions},
	{"services", services},
	{"shared memory and devices of the kernel", kernelObjects},
	{"terminals", terminals},
	{"devices", devices},
	{"walking to a path", walking},
	{"what programs read at their start", startFiles},
	{"grants", grants},
	{"typing", typing},
	{"protected paths", protectedPaths},
	{"network", network},
	{"sockets", sockets},
	{"the sidecar's own", ownState},
	{"fingerprint", fingerprint},
}

var trackOnly = []section{
	{"open by default", openByDefault},
	{"fingerprint", fingerprint},
}

// writer collects text and parameters.
type writer struct {
	text       strings.Builder
	parameters []string
}

// line writes one line.
func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

// parameter makes a parameter of a value, and returns the expression that
// stands for it.
func (w *writer) parameter(kind, value string) string {
	key := fmt.Sprintf("%s_%d", kind, len(w.parameters)/2)
	w.parameters = append(w.parameters, key, value)
	return fmt.Sprintf("(param %q)", key)
}

// below is the filter for a file or for a directory with everything in it.
func (w *writer) below(kind string, real Real) string {
	filter := "literal"
	if real.Dir {
		filter = "subpath"
	}
	return fmt.Sprintf("(%s %s)", filter, w.parameter(kind, real.Path))
}
