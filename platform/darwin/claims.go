package darwin

import (
	"fmt"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// waysOut is the report of the protection Syscalls. It claims of typing what a
// try has shown.
func waysOut(typing Typing) platform.Protection {
	p := platform.Protection{Status: platform.Enforced, Mechanism: mechanism}
	denied := "services that start programs, other processes' memory, mounting, kernel devices"
	rest := ""
	switch typing {
	case TypingDenied:
		denied += ", typing into terminals"
	case TypingRefused:
		rest = "; macOS itself refuses to type into terminals"
	case TypingOpen:
		p.Status = platform.Degraded
		rest = "; a program can type into the session's terminal (TIOCSTI), and a shell outside may read that later"
	case TypingUntried:
		rest = "; whether typing into terminals is denied could not be tried"
	}
	p.Detail = "the ways out of the sandbox are denied one by one: " + denied +
		"; no second sandbox can be applied" + rest
	return p
}

// refusal is why no restricted session may start on this macOS.
type refusal struct{ cause string }

func (r *refusal) Error() string { return r.cause + "; update sandbox-sidecar or macOS, and report it" }

// add says in a report of the machine what sessions do without.
func (f Finding) add(protections map[string]platform.Protection) {
	p, known := protections[platform.Filesystem]
	switch {
	case !known:
		return
	case f.Untried != "":
		p.Detail += "; the profile could not be tried: " + f.Untried
	case len(f.Faults) > 0:
		faults := make([]string, 0, len(f.Faults))
		for _, fault := range f.Faults {
			faults = append(faults, fault.String())
		}
		p.Detail += fmt.Sprintf("; this macOS does not take a part of the profile, and sessions do without it: %s",
			strings.Join(faults, "; "))
	}
	protections[platform.Filesystem] = p
}
