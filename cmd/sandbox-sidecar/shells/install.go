//go:build unix

package shells

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// Install makes a link for each shell of this machine, and returns their paths.
// Links that lead to this program stay. Anything else in their place is an
// error.
func Install(dir string, finder Finder) (links []string, err error) {
	if err := fsguard.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of shells: %w", err)
	}
	if err := ownAlone(dir); err != nil {
		return nil, fmt.Errorf("use %s: %w", dir, err)
	}
	if err := holdsShells(dir); err != nil {
		return nil, fmt.Errorf("use %s: %w", dir, err)
	}
	for _, name := range Names {
		if _, err := finder.Find(name); err != nil && name != Generic {
			continue
		}
		link := filepath.Join(dir, name)
		if err := place(link, finder.Self); err != nil {
			return links, fmt.Errorf("make link %s: %w", link, err)
		}
		links = append(links, link)
	}
	return links, nil
}

var errOtherFiles = errors.New("it holds other files, which no session could write: choose a directory for this alone")

// holdsShells returns an error if a directory has anything but shells. Sessions
// cannot write there.
func holdsShells(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !slices.Contains(Names, entry.Name()) {
			return errOtherFiles
		}
	}
	return nil
}

// Record notes in a directory of such notes that dir has links, so that sessions
// can be kept from changing them. Nothing is noted twice.
func Record(notes, dir string) error {
	if err := fsguard.MkdirAll(notes, 0o700); err != nil {
		return fmt.Errorf("note where the shells are: %w", err)
	}
	sum := sha256.Sum256([]byte(dir))
	if err := place(filepath.Join(notes, hex.EncodeToString(sum[:8])), dir); err != nil {
		return fmt.Errorf("note where the shells are: %w", err)
	}
	return nil
}

var errOthers = errors.New("others may write there, and could replace the shells: choose a directory of your own")

// ownAlone returns an error if another user may put something into a directory.
// What is above it counts only for sticky directories such as /tmp.
func ownAlone(dir string) error {
	for path := dir; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		owned := int(stat.Uid) == os.Geteuid() || stat.Uid == 0
		if !owned || info.Mode().Perm()&0o022 != 0 && (path == dir || info.Mode()&os.ModeSticky == 0) {
			return errOthers
		}
		if path == filepath.Dir(path) {
			return nil
		}
	}
}

// place makes a link, unless it is there already. Another link in its place is
// removed.
func place(link, target string) error {
	found, err := os.Readlink(link)
	switch {
	case err == nil && found == target:
		return nil
	case err == nil: // an earlier version, or a program that has moved
		if err := os.Remove(link); err != nil {
			return err
		}
	case errors.Is(err, unix.EINVAL):
		return errors.New("a file that is not a link is in the way")
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	return os.Symlink(target, link)
}

// Recipe is what to write into the settings of a program.
type Recipe struct {
	// Program is its name, and Where the file or dialog.
	Program, Where string
	// Lines are what to write there.
	Lines []string
}

// Recipes are for the links in a directory. shell is the name of the link for
// the user's own shell. system is Go's name of the system.
func Recipes(dir, shell, system string) []Recipe {
	own, generic := filepath.Join(dir, shell), filepath.Join(dir, Generic)
	if system == "darwin" {
		system = "osx" // as VS Code calls it
	}
	return []Recipe{
		{"VS Code", "settings.json", []string{
			fmt.Sprintf(`"terminal.integrated.profiles.%s": {"%s (sandbox)": {"path": %q}},`, system, shell, own),
			fmt.Sprintf(`"terminal.integrated.defaultProfile.%s": "%s (sandbox)",`, system, shell),
			fmt.Sprintf(`"terminal.integrated.automationProfile.%s": {"path": %q},`, system, own),
		}},
		{"Zed", "settings.json", []string{fmt.Sprintf(`"terminal": {"shell": {"program": %q}}`, own)}},
		{"JetBrains", "Settings, Tools, Terminal, Shell path", []string{own}},
		{"Neovim", "init.lua", []string{fmt.Sprintf(`vim.o.shell = %q; vim.o.shelltemp = false`, own)}},
		{"Emacs", "init.el", []string{
			fmt.Sprintf(`(setq shell-file-name %q explicit-shell-file-name %q vterm-shell %q)`, own, own, own),
		}},
		{"Helix", "config.toml, below [editor]", []string{fmt.Sprintf(`shell = [%q, "-c"]`, own)}},
		{"tmux", "tmux.conf", []string{"set -g default-shell " + own}},
		{"sshd", "sshd_config", []string{"ForceCommand " + generic}},
		{"Claude Code", "its environment", []string{fmt.Sprintf("CLAUDE_CODE_SHELL_PREFIX='%s -c'", own)}},
		{"others", "their environment, if they obey SHELL", []string{"SHELL=" + own}},
	}
}

// Own is the name of the link for the user's shell, given those that exist.
func Own(passwd string, links []string) string {
	names := make([]string, 0, len(links))
	for _, link := range links {
		names = append(names, filepath.Base(link))
	}
	if name, is := CalledAs(passwd); is && slices.Contains(names, name) {
		return name
	}
	return Generic
}
