package darwin

import (
	"fmt"
	"strings"
)

// Profile is a Seatbelt profile.
type Profile struct {
	// Text is in the profile language, SBPL. It is ASCII, and its shape depends
	// only on the number of paths of each kind.
	Text string
	// Parameters are alternating keys and values, for
	// sandbox_init_with_parameters.
	Parameters []string
}

// String formats the profile for people and golden files.
func (p Profile) String() string {
	var b strings.Builder
	b.WriteString(p.Text)
	for i := 0; i+1 < len(p.Parameters); i += 2 {
		fmt.Fprintf(&b, "%s = %q\n", p.Parameters[i], p.Parameters[i+1])
	}
	return b.String()
}

// Profile returns the scene's profile. Of the rules on one operation, the last
// match decides. So denials follow the grants that they restrict, and the
// fingerprint comes last. For the measured exceptions see
// docs/design/seatbelt.md: only the first line and wholly open operations have
// no filter, and denials name the operations that grants name.
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
	{"what that leaves open", openUnlessDenied},
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

// parameter adds a parameter with this value and returns the expression for it.
func (w *writer) parameter(kind, value string) string {
	key := fmt.Sprintf("%s_%d", kind, len(w.parameters)/2)
	w.parameters = append(w.parameters, key, value)
	return fmt.Sprintf("(param %q)", key)
}

// below returns the filter for a file, or for a directory with everything in
// it.
func (w *writer) below(kind string, real Real) string {
	filter := "literal"
	if real.Dir {
		filter = "subpath"
	}
	return fmt.Sprintf("(%s %s)", filter, w.parameter(kind, real.Path))
}
