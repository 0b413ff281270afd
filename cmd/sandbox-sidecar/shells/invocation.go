package shells

import (
	"path/filepath"
	"slices"
	"strings"
)

// Generic is the name of the link that stands for the user's own shell.
const Generic = "sandbox-sh"

// Names are the shells that a link may be named after. The one that another
// name ends in comes last: "sh" is the end of all.
var Names = []string{"bash", "zsh", "fish", "dash", "ksh", Generic, "sh"}

// CalledAs returns the shell that a program's argv[0] names: its base name is a
// shell's or ends in one, as in "-bash" or "/opt/my-zsh".
func CalledAs(argv0 string) (name string, is bool) {
	base := filepath.Base(argv0)
	i := slices.IndexFunc(Names, func(name string) bool { return strings.HasSuffix(base, name) })
	if i < 0 {
		return "", false
	}
	return Names[i], true
}

// Invocation is how a shell was called.
type Invocation struct {
	// Command is true for -c and for a script: nobody types commands.
	Command bool
	// Bare is true if there are no arguments.
	Bare bool
}

// Argv0 is the argv[0] of the real shell: a path, a name, or the form of a login
// shell, as this program was called.
func Argv0(called, real string) string {
	switch base := filepath.Base(real); {
	case strings.HasPrefix(called, "-"):
		return "-" + base
	case strings.Contains(called, "/"):
		return real
	default:
		return base
	}
}

// takeValue are the long options of bash and the short ones of every shell that
// take the next argument.
var takeValue = []string{"--rcfile", "--init-file", "-O", "+O", "-o", "+o", "-C", "--init-command"}

// Parse reads a shell's arguments, without argv[0]. terminal says that its
// standard input is a terminal.
func Parse(args []string, terminal bool) Invocation {
	interactive := false
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--command" || strings.HasPrefix(arg, "--command="): // fish
			return Invocation{Command: true}
		case slices.Contains(takeValue, arg):
			i++
		case arg == "--" || arg == "-":
			if i+1 < len(args) {
				return Invocation{Command: true} // a script
			}
		case strings.HasPrefix(arg, "--"):
			interactive = interactive || arg == "--interactive"
		case len(arg) > 1 && (arg[0] == '-' || arg[0] == '+'):
			if arg[0] == '-' && strings.Contains(arg, "c") {
				return Invocation{Command: true}
			}
			interactive = interactive || strings.Contains(arg, "i")
			if last := arg[len(arg)-1]; last == 'o' || last == 'O' {
				i++ // as in -eo pipefail
			}
			if strings.Contains(arg, "s") { // the rest are the script's arguments
				return Invocation{Command: !terminal && !interactive}
			}
		default: // a script
			return Invocation{Command: true}
		}
	}
	return Invocation{Command: !terminal && !interactive, Bare: len(args) == 0}
}
