package gitconfig

// Programs are the places of git that no session can write. PATH does not
// count: it may name a directory of the project. /usr/bin/git of macOS is not
// among them, because it may open a window.
var Programs = map[string][]string{
	"linux": {
		"/usr/bin/git", "/usr/local/bin/git", "/bin/git", "/run/current-system/sw/bin/git",
		"/nix/var/nix/profiles/default/bin/git",
	},
	"darwin": {"/opt/homebrew/bin/git", "/usr/local/bin/git", "/Library/Developer/CommandLineTools/usr/bin/git"},
}
