package startup

import (
	"slices"
	"strings"
	"testing"
)

func TestSourced(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		// As installers write it.
		{`. "$HOME/.cargo/env"`, "/h/.cargo/env"},
		{"export NVM_DIR=\"$HOME/.nvm\"\n[ -s \"$NVM_DIR/nvm.sh\" ] && \\. \"$NVM_DIR/nvm.sh\"  # loads nvm", "/h/.nvm/nvm.sh"},
		{`[[ -s "${HOME}/.sdkman/bin/init.sh" ]] && source "${HOME}/.sdkman/bin/init.sh"`, "/h/.sdkman/bin/init.sh"},
		{"if [ -f ~/.bash_work ]; then . ~/.bash_work; fi", "/h/.bash_work"},
		{"if [ -f ~/.bash_work ]; then\n\tsource ~/.bash_work\nfi\r\n", "/h/.bash_work"},
		{`[[ ! -f ~/.p10k.zsh ]] || source ~/.p10k.zsh`, "/h/.p10k.zsh"},
		{
			`ZINIT_HOME="${XDG_DATA_HOME:-${HOME}/.local/share}/zinit"` + "\nsource \"${ZINIT_HOME}/zinit.zsh\"",
			"/h/.local/share/zinit/zinit.zsh",
		},
		{"test -f ~/.x.fish; and source ~/.x.fish", "/h/.x.fish"},
		{"ZSH=~/.omz; . $ZSH/a; . $ZSH/../b", "/h/.omz/a /h/b"},
		{". /opt/work/env.sh && . ~/two", "/opt/work/env.sh /h/two"},
		{`. ~/'with blank'; . ~/"an other"; . ~/a\ third`, "/h/with blank /h/an other /h/a third"},
		{"( . ~/a ) | cat; { . ~/b; }; ! . ~/c; builtin . ~/d", "/h/a /h/b /h/c /h/d"},
		{". ~/a\n. ~/a\n. ~//a", "/h/a"},
		// What nobody can know, and what names nothing.
		{"# . ~/a\necho . ~/b; x=1 # . ~/c", ""},
		{". relative; . ./x; . x/y; . ~other/x; . '~/x'; .; source", ""},
		{". $UNSET/x; . ${UNSET}/x; . ${UNSET#a}/x; . $(pwd)/x; . `pwd`/x; . ~/*.sh; . ~/a?; . ~/[ab]; . ~/{a,b}", ""},
		{"D=/a\nD=$(x)\n. $D/x", ""},
		{"D=/a\nD=$UNSET\n. $D/x", ""},
		{". \"$HOME/no end\n. ~/a", "/h/a"},
		{"echo it's\n. ~/a", "/h/a"},
		{". ~/a\\", ""},
		{"source<~/a;for f in a b; do . $f; done", ""},
		{"${", ""},
		{"$", ""},
		{". ${HOME", ""},
		{". ${HOME:-", ""},
		{". ${X:-${Y:-~/a}}", ""},
	} {
		if got := strings.Join(Sourced(test.text, "/h"), " "); got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
	if got := Sourced(". $HOME/a", ""); got != nil {
		t.Errorf("without a home directory: %q", got)
	}
	if got := Sourced(strings.Repeat("#", MaxFile)+"\n. /a", "/h"); got != nil {
		t.Errorf("of a file that is too long: %q", got)
	}
}

// No text stops the reader, and what it finds is an absolute path.
func FuzzSourced(f *testing.F) {
	for _, text := range []string{`. "$HOME/${A:-${B}}"`, "A=~/x;. $A'\n", `\`, "${A:-$"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if slices.ContainsFunc(Sourced(text, "/h"), func(path string) bool { return path == "" || path[0] != '/' }) {
			t.Error(text)
		}
	})
}
