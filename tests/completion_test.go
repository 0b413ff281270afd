package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// completed is what each shell should offer, for a command line whose last word
// is completed.
var completed = []struct {
	line     string
	has, not []string
}{
	{"sandbox-sidecar ", []string{"exec", "policy", "doctor", "completion"}, []string{"--kind"}},
	{"sandbox-sidecar ex", []string{"exec", "explain"}, []string{"policy"}},
	{"sandbox-sidecar exec --k", []string{"--kind"}, []string{"--project"}},
	{"sandbox-sidecar exec --kind t", []string{"terminal", "tool"}, nil},
	{"sandbox-sidecar explain con", []string{"connect", "connect_unix"}, []string{"read"}},
	{"sandbox-sidecar explain read no", []string{"notes.txt"}, nil},
	{"sandbox-sidecar policy --settings no", []string{"notes.txt"}, nil},
	{"sandbox-sidecar trust de", []string{"deep"}, []string{"denied.txt"}},
	{"sandbox-sidecar exec -- completed-pro", []string{"completed-program"}, nil},
	{"sandbox-sidecar exec -- cat no", []string{"notes.txt"}, nil},
	{"sandbox-sidecar completion ", []string{"bash", "fish", "zsh"}, nil},
	{"sandbox-sidecar help le", []string{"learn"}, []string{"exec"}},
}

// The completions are loaded into the real shells.
func TestCompletions_InRealShells(t *testing.T) {
	t.Parallel()
	for shell, offers := range map[string]func(*testing.T, *harness.World, string) []string{
		"bash": bashOffers, "bash with bash-completion": bashOffersLoaded, "fish": fishOffers, "zsh": zshOffers,
	} {
		name, _, _ := strings.Cut(shell, " ")
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			harness.RequirePrograms(t, name)
			w := harness.NewWorld(t)
			for _, file := range []string{"notes.txt", "denied.txt", "deep/file"} {
				harness.Write(t, filepath.Join(w.Project, file), "")
			}
			harness.Write(t, filepath.Join(w.Home, "bin", "completed-program"), "#!/bin/sh\n")
			if err := os.Chmod(filepath.Join(w.Home, "bin", "completed-program"), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, test := range completed {
				got := offers(t, w, test.line)
				for _, want := range test.has {
					if !slices.Contains(got, want) {
						t.Errorf("%q offers %q, want %q", test.line, got, want)
					}
				}
				for _, unwanted := range test.not {
					if slices.Contains(got, unwanted) {
						t.Errorf("%q offers %q", test.line, unwanted)
					}
				}
			}
		})
	}
}

// inShell runs a script in a shell, with the sidecar in PATH, in the project,
// and returns the words that it prints.
func inShell(t *testing.T, w *harness.World, name string, args ...string) []string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir = w.Project
	path := filepath.Dir(harness.Binary(t)) + ":" + filepath.Join(w.Home, "bin") + ":/usr/bin:/bin"
	command.Env = append(harness.Environ(w), "PATH="+path, "TERM=dumb")
	var errs strings.Builder
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil || errs.Len() > 0 {
		t.Errorf("%s: %v: %s", name, err, &errs)
	}
	var words []string
	for line := range strings.Lines(string(out)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words = append(words, strings.TrimSuffix(word, "/"))
	}
	return words
}

// bashOffers calls the function as readline does.
func bashOffers(t *testing.T, w *harness.World, line string) []string {
	t.Helper()
	return bashScript(t, w, "", line)
}

func bashOffersLoaded(t *testing.T, w *harness.World, line string) []string {
	t.Helper()
	const loader = "/usr/share/bash-completion/bash_completion"
	if _, err := os.Stat(loader); err != nil {
		harness.Skip(t, "bash-completion", "no "+loader)
	}
	return bashScript(t, w, ". "+loader+"; ", line)
}

func bashScript(t *testing.T, w *harness.World, before, line string) []string {
	t.Helper()
	script := before + `eval "$(sandbox-sidecar completion bash)"
		compopt() { :; } # knows no completion outside of readline
		COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
		read -ra COMP_WORDS <<<"$1"
		[[ $1 != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_sandbox_sidecar sandbox-sidecar "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
		printf '%s\n' "${COMPREPLY[@]}"`
	return inShell(t, w, "bash", "--norc", "-c", script, "bash", line)
}

func fishOffers(t *testing.T, w *harness.World, line string) []string {
	t.Helper()
	return inShell(t, w, "fish", "--no-config", "-c", "sandbox-sidecar completion fish | source; complete -C $argv[1]",
		line)
}

// zshOffers types the line and a tab into zsh, on a terminal of zsh's own, with
// the list of all matches. What compinit finds on the machine, which takes it more
// than a second, is kept for the next line.
func zshOffers(t *testing.T, w *harness.World, line string) []string {
	t.Helper()
	const script = `zmodload zsh/zpty
		zpty z zsh -f -i
		await() { while zpty -r z out && [[ $out != *$1* ]]; do :; done; }
		zpty -w z 'PS1= PROMPT_EOL_MARK= ; autoload -Uz compinit; compinit -u -d $HOME/dump; bindkey "^I" complete-word'
		zpty -w z 'eval "$(sandbox-sidecar completion zsh)"'
		zpty -w z 'compadd() {
			[[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]] || { builtin compadd "$@"; return; }
			local -a found; builtin compadd -A found "$@"; print -rl -- $found >>$HOME/found; builtin compadd "$@"
		}'
		zpty -w z 'echo rea""dy'; await ready
		zpty -n -w z "$1"$'\t'$'\C-a\C-k'
		zpty -w z 'echo do""ne'; await done
		zpty -d z
		cat $HOME/found; rm -f $HOME/found`
	return inShell(t, w, "zsh", "-f", "-c", script, "zsh", line)
}
