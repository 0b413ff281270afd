package commandline

import (
	"fmt"
	"io"
	"strings"
)

// Shells are the shells that Completion knows.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Completion writes a shell's completions. It reports whether it knows the
// shell.
func (p Program) Completion(w io.Writer, shell string) bool {
	switch shell {
	case "bash":
		p.bash(w)
	case "zsh":
		p.zsh(w)
	case "fish":
		p.fish(w)
	default:
		return false
	}
	return true
}

// function is the name of the program as a part of a shell function's name.
func (p Program) function() string { return "_" + strings.ReplaceAll(p.Name, "-", "_") }

// bash writes the completions of bash. They work without the package
// bash-completion, and if that is loaded, they complete the program that exec
// runs as it does.
func (p Program) bash(w io.Writer) {
	fmt.Fprintf(w, `# bash completion for %[1]s: source it, or install it as
# share/bash-completion/completions/%[1]s
%[2]s() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local command=${COMP_WORDS[1]} flags= words= takes= i
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "%[3]s --help --version" -- "$cur"))
		return
	fi
	case $command in
	help) COMPREPLY=($(compgen -W "%[3]s" -- "$cur")); return ;;
`, p.Name, p.function(), strings.Join(p.names(), " "))
	for _, c := range p.Commands {
		if c.Name == "help" {
			continue
		}
		var flags []string
		for _, o := range c.options() {
			flags = append(flags, o.dashes())
		}
		fmt.Fprintf(w, "\t%s) flags='%s' takes=%d words='%s' ;;\n", c.Name, strings.Join(flags, " "), c.Takes,
			strings.Join(c.Words, " "))
	}
	fmt.Fprint(w, "\t*) return ;;\n\tesac\n\tcase $command,$prev in\n")
	for _, c := range p.Commands {
		for _, o := range c.options() {
			switch {
			case o.placeholder == "":
				continue
			case o.words != nil:
				fmt.Fprintf(w, "\t%s,%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", c.Name, o.dashes(),
					strings.Join(o.words, " "))
			case o.placeholder == "DIR":
				fmt.Fprintf(w, "\t%s,%s) takes=%d flags= ;;\n", c.Name, o.dashes(), Dirs)
			case o.placeholder == "FILE":
				fmt.Fprintf(w, "\t%s,%s) takes=%d flags= ;;\n", c.Name, o.dashes(), Files)
			default:
				fmt.Fprintf(w, "\t%s,%s) return ;;\n", c.Name, o.dashes())
			}
		}
	}
	fmt.Fprintf(w, `	esac
	if ((takes == %[5]d)); then
		for ((i = 2; i < COMP_CWORD; i++)); do
			[[ ${COMP_WORDS[i]} == -- ]] || continue
			if declare -F _comp_command_offset >/dev/null; then
				_comp_command_offset $((i + 1))
			elif declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			elif ((i + 1 == COMP_CWORD)); then
				COMPREPLY=($(compgen -c -- "$cur"))
			else
				local IFS=$'\n'
				compopt -o filenames 2>/dev/null
				COMPREPLY=($(compgen -f -- "$cur"))
			fi
			return
		done
	fi
	local IFS=$'\n' # names may hold blanks
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "${flags// /$IFS}${IFS}--version" -- "$cur"))
		return
	fi
	if ((takes == %[4]d && COMP_CWORD == 2)); then
		COMPREPLY=($(compgen -W "${words// /$IFS}" -- "$cur"))
	elif ((takes == %[4]d || takes == %[3]d)); then
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -f -- "$cur"))
	elif ((takes == %[2]d)); then
		compopt -o filenames 2>/dev/null
		COMPREPLY=($(compgen -d -- "$cur"))
	elif ((takes == %[5]d)); then
		COMPREPLY=($(compgen -W "--${IFS}${flags// /$IFS}" -- "$cur"))
	fi
}
complete -F %[1]s %[6]s
`, p.function(), Dirs, Files, Words, Programs, p.Name)
}

// zsh writes the completions of zsh, as the function of a file in fpath.
func (p Program) zsh(w io.Writer) {
	fmt.Fprintf(w, `#compdef %[1]s
# zsh completion for %[1]s: install it as a file _%[1]s in a directory of fpath,
# or source it after compinit.
%[2]s() {
	local context state state_descr line
	typeset -A opt_args
	if ((CURRENT == 2)); then
		local -a commands=(
`, p.Name, p.function())
	for _, c := range p.Commands {
		fmt.Fprintf(w, "\t\t\t%s\n", quoteShell(c.Name+":"+strings.ReplaceAll(c.Summary, ":", `\:`)))
	}
	fmt.Fprintf(w, `		)
		_describe command commands
		_arguments '--help[print the commands]' '--version[print the version]'
		return
	fi
	local command=$words[2]
	words=("${(@)words[2,-1]}")
	((CURRENT--))
	case $command in
	help) compadd -- %s ;;
`, strings.Join(p.names(), " "))
	for _, c := range p.Commands {
		if c.Name == "help" {
			continue
		}
		fmt.Fprintf(w, "\t%s)\n\t\t_arguments -s -S", c.Name)
		for _, o := range c.options() {
			fmt.Fprintf(w, " \\\n\t\t\t%s", quoteShell(o.zsh()))
		}
		fmt.Fprintf(w, " \\\n\t\t\t'--version[print the version]'")
		switch c.Takes {
		case Dirs:
			fmt.Fprintf(w, " \\\n\t\t\t'1:directory:_files -/'")
		case Files:
			fmt.Fprintf(w, " \\\n\t\t\t'*:file:_files'")
		case Words:
			fmt.Fprintf(w, " \\\n\t\t\t'1:word:(%s)' '*:file:_files'", strings.Join(c.Words, " "))
		case Programs:
			fmt.Fprintf(w, " \\\n\t\t\t'(-)1:program:_command_names -e' \\\n\t\t\t'*::argument:_normal'")
		}
		fmt.Fprint(w, "\n\t\t;;\n")
	}
	fmt.Fprintf(w, `	esac
}
if [[ $funcstack[1] == _%[1]s ]]; then
	%[2]s "$@"
else
	compdef %[2]s %[1]s
fi
`, p.Name, p.function())
}

// zsh is the flag as an argument of _arguments.
func (o option) zsh() string {
	usage := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(o.usage)
	spec := o.dashes() + "[" + usage + "]"
	switch {
	case o.words != nil:
		spec += ":value:(" + strings.Join(o.words, " ") + ")"
	case o.placeholder == "DIR":
		spec += ":directory:_files -/"
	case o.placeholder == "FILE":
		spec += ":file:_files"
	case o.placeholder != "":
		spec += ":value:"
	}
	return spec
}

// fish writes the completions of fish.
func (p Program) fish(w io.Writer) {
	name := p.Name
	fmt.Fprintf(w, "# fish completion for %[1]s: source it, or install it as\n"+
		"# share/fish/vendor_completions.d/%[1]s.fish\n", name)
	fmt.Fprintf(w, "complete -c %s -f\n", name)
	fmt.Fprintf(w, "complete -c %s -n __fish_use_subcommand -l help -d 'print the commands'\n", name)
	fmt.Fprintf(w, "complete -c %s -l version -d 'print the version'\n", name)
	for _, c := range p.Commands {
		fmt.Fprintf(w, "complete -c %s -n __fish_use_subcommand -a %s -d %s\n", name, c.Name, quoteShell(c.Summary))
		seen := "-n " + quoteShell("__fish_seen_subcommand_from "+c.Name)
		for _, o := range c.options() {
			flag := "-l " + o.name
			if len(o.name) == 1 {
				flag = "-s " + o.name
			}
			switch {
			case o.words != nil:
				flag += " -x -a " + quoteShell(strings.Join(o.words, " "))
			case o.placeholder == "DIR":
				flag += " -x -a '(__fish_complete_directories)'"
			case o.placeholder == "FILE":
				flag += " -r -F"
			case o.placeholder != "":
				flag += " -x"
			}
			fmt.Fprintf(w, "complete -c %s %s %s -d %s\n", name, seen, flag, quoteShell(o.usage))
		}
		switch c.Takes {
		case Dirs:
			fmt.Fprintf(w, "complete -c %s %s -a '(__fish_complete_directories)'\n", name, seen)
		case Files:
			fmt.Fprintf(w, "complete -c %s %s -F\n", name, seen)
		case Words:
			fmt.Fprintf(w, "complete -c %s %s -a %s\n", name, seen, quoteShell(strings.Join(c.Words, " ")))
			fmt.Fprintf(w, "complete -c %s -n %s -F\n", name, quoteShell("__fish_seen_subcommand_from "+c.Name+
				"; and __fish_seen_subcommand_from "+strings.Join(c.Words, " ")))
		case Programs:
			fmt.Fprintf(w, "complete -c %s %s -x -a '(__fish_complete_subcommand --fcs-skip=2)'\n", name, seen)
		}
	}
	fmt.Fprintf(w, "complete -c %s -n '__fish_seen_subcommand_from help' -a %s\n", name,
		quoteShell(strings.Join(p.names(), " ")))
}

// quoteShell quotes a text for bash, zsh and fish. Ours have no backslash before
// an apostrophe, which fish would read differently.
func quoteShell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
