// Package commandline describes the commands of a program. Their help, the
// completions of shells and the manual page are written from one table.
package commandline

import (
	"flag"
	"slices"
	"strings"
)

// Program is a program with commands.
type Program struct {
	Name, Version string
	// Summary is one sentence. Details are paragraphs, one a line.
	Summary, Details string
	Commands         []Command
	// Examples are command lines with what they do; Statuses are exit statuses, and
	// Files paths, with what they mean. Only the manual page has them.
	Examples, Statuses, Files [][2]string
}

// Command is one command of a program.
type Command struct {
	Name string
	// Args follow the name in the synopsis: "[flags] -- CMD [ARG…]".
	Args string
	// Summary starts with a verb in lower case, and has no full stop.
	Summary string
	// Details are paragraphs, one a line.
	Details string
	// Takes says what the arguments are that are not flags, for completions.
	Takes Takes
	// Words are the values of the first argument if Takes is Words.
	Words []string
	// Flags are the command's flags. If a flag has a value, its usage starts
	// with a placeholder: "`FILE`: ", "`DIR`: ", or "`a|b|c`: " for one of
	// these words.
	Flags *flag.FlagSet
}

// Takes is what a command's arguments are.
type Takes int

const (
	// Nothing is no argument, or one that nobody can complete.
	Nothing Takes = iota
	// Dirs is a directory.
	Dirs
	// Files are paths.
	Files
	// Words is one of Command.Words, and then a path.
	Words
	// Programs is another program with its arguments.
	Programs
)

// VersionFlag is a flag of every command. Its help does not list it.
const VersionFlag = "version"

// option is a flag as the writers need it.
type option struct {
	name, placeholder, usage string
	// words are the values that the placeholder lists, or nil.
	words []string
}

// options are the flags of a command, in the order of their names.
func (c Command) options() []option {
	var all []option
	if c.Flags == nil {
		return nil
	}
	c.Flags.VisitAll(func(f *flag.Flag) {
		if f.Name == VersionFlag {
			return
		}
		placeholder, usage := flag.UnquoteUsage(f)
		usage = strings.TrimPrefix(usage, placeholder+": ")
		o := option{name: f.Name, placeholder: placeholder, usage: usage}
		if strings.Contains(placeholder, "|") {
			o.words = strings.Split(placeholder, "|")
		}
		if placeholder != "" && f.DefValue != "" {
			o.usage += " (default " + f.DefValue + ")"
		}
		all = append(all, o)
	})
	return append(all, option{name: "help", usage: "print this help"})
}

// dashes is the flag as it is typed.
func (o option) dashes() string { return Dashes(o.name) }

// Dashes is a flag of that name as it is typed.
func Dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// synopsis is the flag with its placeholder.
func (o option) synopsis() string {
	if o.placeholder == "" {
		return o.dashes()
	}
	return o.dashes() + " " + o.placeholder
}

// names are the names of all commands, sorted.
func (p Program) names() []string {
	var all []string
	for _, c := range p.Commands {
		all = append(all, c.Name)
	}
	slices.Sort(all)
	return all
}

// paragraphs are the paragraphs of a text.
func paragraphs(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" })
}
