package risks

import "slices"

// harmless are places that programs make private to the user although they hold
// no secret, or that everyday programs do not start without.
func harmless() []string {
	return slices.Concat(
		paths(shells()),
		[]string{
			"~/.gitconfig", "~/.config/git", "~/.gitattributes", "~/.gitignore_global", "~/.config/tig",
			"~/.config/gh/config.yml",
			"~/.vimrc", "~/.vim", "~/.config/vim", "~/.config/nvim", "~/.local/share/nvim", "~/.local/state/nvim",
			"~/.emacs", "~/.nanorc", "~/.config/nano", "~/.config/micro", "~/.config/helix", "~/.config/kak",
			"~/.tmux.conf", "~/.tmux", "~/.config/tmux", "~/.screenrc", "~/.config/zellij",
			"~/.config/htop", "~/.config/btop", "~/.config/procps", "~/.config/ncdu", "~/.config/bat",
			"~/.config/ripgrep",
			"~/.config/lf", "~/.config/ranger", "~/.config/mc", "~/.lesshst", "~/.lesskey",
			"~/.config/go", "~/.config/configstore/update-notifier-*.json",
			"~/.config/dconf", "~/.config/fontconfig", "~/.config/gtk-2.0", "~/.config/gtk-3.0", "~/.config/gtk-4.0",
			"~/.config/mimeapps.list", "~/.config/user-dirs.dirs", "~/.config/user-dirs.locale",
			"~/.config/monitors.xml",
			"~/.config/QtProject.conf", "~/.config/Trolltech.conf", "~/.config/kdeglobals", "~/.config/kwinrc",
			"~/.config/plasma*rc", "~/.config/dolphinrc", "~/.config/katerc", "~/.config/konsolerc",
			"~/.cache/fontconfig", "~/.cache/starship",
		},
	)
}

func paths(list []Place) (all []string) {
	for _, place := range list {
		all = append(all, place.Path)
	}
	return all
}

// withHarmless marks the places that are in the table, and adds the others. Of
// several of one path it marks the first.
func withHarmless(table []Place) []Place {
	first := make(map[string]int, len(table))
	for i := len(table) - 1; i >= 0; i-- {
		first[table[i].Path] = i
	}
	for _, path := range harmless() {
		i, known := first[path]
		if !known {
			i = len(table)
			table, first[path] = append(table, Place{Path: path}), i
		}
		table[i].Harmless = true
	}
	return table
}
