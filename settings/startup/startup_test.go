package startup

import (
	"path/filepath"
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
		// Loops.
		{"for rc in ~/.bashrc.d/*; do\n\tif [ -f \"$rc\" ]; then\n\t\t. \"$rc\"\n\tfi\ndone\nunset rc", "/h/.bashrc.d/*(pattern)"},
		{"for f in $HOME/.sh/*.sh /opt/x; do source ${f}; done", "/h/.sh/*.sh(pattern) /opt/x"},
		{"for f in \"$HOME\"/.sh/*; do [ -r \"$f\" ] && . \"$f\"; done", "/h/.sh/*(pattern)"},
		{"for file in ~/.{path,exports,extra}; do\n\t[ -r \"$file\" ] && source \"$file\"\ndone", "/h/.path /h/.exports /h/.extra"},
		{"for f (~/.zsh/*.zsh) source $f", "/h/.zsh/*.zsh(pattern)"},
		{"for f in ~/.zsh/*.zsh(N); do source $f; done", "/h/.zsh/*.zsh(pattern)"},
		{"for f in ~/.config/fish/own/*.fish\n\tsource $f\nend", "/h/.config/fish/own/*.fish(pattern)"},
		{"D=~/d; for f in $D/*.sh; do . $f; done", "/h/d/*.sh(pattern)"},
		{"for f in ~/a; do . $f; done; f=~/b; . $f", "/h/a /h/b"},
		{"for f in ~/a; do . $f; done; for f in ~/b; do . $f; done", "/h/a /h/b"},
		{"for f in ~/[A-Z]* ~/?* ~/.[a-z]* /*/* ~/*/* /?*; do . $f; done", ""},
		{"for f in ~/*/x /*/env; do . $f; done", "/h/*/x(deep) /*/env(deep)"},
		{"for f in $UNSET/* x* '~/a*' ~/a\\** ~/{a,{b,c}} '~/a?'; do . $f; done", ""},
		{"for f in ~/a\\?*; do . $f; done", "/h/a?*(pattern)"},
		{"for f in ~/.sh/**/*.sh ~/sh/*/x ~/y*/z; do . $f; done", "/h/.sh/**/*.sh(pattern)(deep) /h/sh/*/x(deep) /h/y*/z(deep)"},
		{"for f in ~/.sh.d/[0-9]* ~/s/[!a-c]?x; do . $f; done", "/h/.sh.d/**(pattern)(wide) /h/s/**x(pattern)(wide)"},
		{"for f in ~/a[ ~/b[]; do [ -r $f ] && . $f; done", ""},
		{"cd ~/d && . x; . ./y; . ../z; cd e; . x; (cd $UNSET; . x)", "/h/d/x /h/d/y /h/z /h/d/e/x"},
		{"cd ~; . x; cd -P ~/d; . y; cd; . z", "/h/x /h/d/y /h/z"},
		{"cd ~/d 2>/dev/null && . x; cd -; . y", "/h/d/x"},
		{"work() {\n\tcd ~/d\n\t. x\n}\n. y; w() { cd ~/e; }; . z", "/h/d/x"},
		{"cd ~/d; for f in *.sh; do . $f; done", "/h/d/*.sh(pattern)"},
		{"for f in ~/a; do . x$f; . ${f%x}; . $f$f; done", ""},
		{"for f in ~/a; do for g in $f/* $f; do . $g; done; done", ""},
		{"for f in a b; do . ~/sh/$f.sh; done", "/h/sh/a.sh /h/sh/b.sh"},
		{"for d in ~/one ~/two; do [ -r $d/env ] && . \"${d}/env\"; done", "/h/one/env /h/two/env"},
		{"for n in a; do . ~/sh/$n-*.sh; done", "/h/sh/a-*.sh(pattern)"},
		{"for f in \"$HOME\"/sh/{a,b}.sh '/x'/{c,d}; do . $f; done", "/h/sh/a.sh /h/sh/b.sh /x/c /x/d"},
		{"for f in ~/a'{b,c}' ~/{'a',b}; do . $f; done", "/h/a{b,c}"},
		{"declare -x D=~/d; typeset E=~/e; local -r F=~/f; . $D/x; . $E/x; source -- $F/x; noglob source ~/n", "/h/d/x /h/e/x /h/f/x /h/n"},
		{". ${A-~/a}; . \"${B:=$HOME/b}\"; . ${C=$HOME/c}/x; . ${HOME-x}/d", "/h/b /h/c/x /h/d"},
		{"export ENV=~/env; BASH_ENV=$HOME/b", "/h/env /h/b"},
		{"export ZDOTDIR=\"$HOME/z\"", "/h/z/.zshenv /h/z/.zprofile /h/z/.zshrc /h/z/.zlogin /h/z/.zlogout"},
		{"ENV=$UNSET/x; ZDOTDIR=~/*; BASH_ENV=relative", ""},
		{"for f; do . $f; done; for f in; do . $f; done; for 1 in ~/a; do . $1; done", ""},
		{"for f in ~/a; do f=$(x); . $f; done", ""},
		{"for f (~/a", ""},
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
		if got := listOf(Sourced(test.text, "/h")); got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
	if got := Sourced(". $HOME/a", ""); got != nil {
		t.Errorf("without a home directory: %v", got)
	}
	if got := Sourced(strings.Repeat("#", MaxFile)+"\n. /a", "/h"); got != nil {
		t.Errorf("of a file that is too long: %v", got)
	}
}

func listOf(sources []Source) string {
	var list []string
	for _, one := range sources {
		if one.Pattern {
			one.Path += "(pattern)"
		}
		if one.Wide {
			one.Path += "(wide)"
		}
		if one.Deep {
			one.Path += "(deep)"
		}
		list = append(list, one.Path)
	}
	return strings.Join(list, " ")
}

// No text stops the reader, and what it finds is an absolute path.
func FuzzSourced(f *testing.F) {
	for _, text := range []string{`. "$HOME/${A:-${B}}"`, "A=~/x;. $A'\n", `\`, "${A:-$"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if slices.ContainsFunc(Sourced(text, "/h"), func(one Source) bool {
			return !filepath.IsAbs(one.Path) || one.Pattern && !strings.Contains(one.Path, "*")
		}) {
			t.Error(text)
		}
	})
}
