package git

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// maxPrograms bounds the commands that count of each configuration file, and the
// words of each.
const maxPrograms = 64

// programKeys are the names of variables whose value is a command, by section.
var programKeys = map[string][]string{
	"browser":     {"cmd", "path"},
	"core":        {"askpass", "alternaterefscommand", "editor", "fsmonitor", "gitproxy", "pager", "sshcommand"},
	"credential":  {"helper"},
	"diff":        {"command", "external", "textconv"},
	"difftool":    {"cmd", "path"},
	"filter":      {"clean", "process", "smudge"},
	"gc":          {"recentobjectshook"},
	"gpg":         {"program", "defaultkeycommand"},
	"guitool":     {"cmd"},
	"hook":        {"command"},
	"imap":        {"tunnel"},
	"instaweb":    {"httpd"},
	"interactive": {"difffilter"},
	"lfs":         {"clean", "smudge", "path"}, // of an extension, and of a transfer
	"man":         {"cmd", "path"},
	"merge":       {"driver"},
	"mergetool":   {"cmd", "path"},
	"remote":      {"receivepack", "uploadpack"},
	"sendemail":   {"cccmd", "headercmd", "sendmailcmd", "smtpserver", "tocmd"},
	"sequence":    {"editor"},
	"tar":         {"command"},
	"trailer":     {"cmd", "command"},
	"uploadpack":  {"packobjectshook"},
	"web":         {"browser"},
}

// namesProgram reports whether git runs a value: as a command, or because it
// begins with "!".
func namesProgram(e gitconfig.Entry) bool {
	section, name := e.Split()
	switch section {
	case "pager":
		return true
	case "alias", "submodule":
		if section == "alias" && strings.Count(e.Key, ".") > 1 { // alias.x.command
			return name == "command"
		}
		return strings.HasPrefix(strings.TrimSpace(e.Value), "!")
	}
	return slices.Contains(programKeys[section], name)
}

// command is a value that git runs, and the variable that has it.
type command struct{ key, value string }

// command adds a value of a file, if git runs it.
func (g *finder) command(file string, e gitconfig.Entry) {
	one := command{e.Key, e.Value}
	if namesProgram(e) && g.counted[file] < maxPrograms && !slices.Contains(g.commands, one) {
		if g.counted == nil {
			g.counted = map[string]int{}
		}
		g.counted[file]++
		g.commands = append(g.commands, one)
	}
}

// programs lists the files that commands name, by the variable that does. A
// command may be a line of the shell, so each of its words counts that leads to
// a file, or that could.
func (g *finder) programs() map[string]string {
	found := map[string]string{}
	add := func(path, key string) {
		target := g.view.Resolve(path)
		if target.Exists && !target.Mode.IsRegular() {
			return
		}
		for _, link := range target.Links {
			found[link.Path] = key
		}
		found[target.Path] = key
	}
	for _, one := range g.commands {
		dir := "" // of the last cd
		words := wordsOf(homes.Replace(one.value))
		for i, word := range words {
			path, ok := g.expand("", word)
			rooted := strings.HasPrefix(word, "~") || strings.HasPrefix(word, "/")
			if i > 0 && words[i-1] == "cd" && rooted && ok {
				dir = path
				continue
			}
			if dir != "" && !rooted {
				at := filepath.Join(dir, word)
				if strings.HasPrefix(word, "./") || g.kind(at).IsRegular() && strings.Contains(word, "/") {
					add(at, one.key)
				}
				continue
			}
			switch {
			case !ok:
			case strings.HasPrefix(word, "~"),
				strings.HasPrefix(word, "/") && (policy.Contains(g.project, path) || g.view.Resolve(path).Exists):
				add(path, one.key)
			default:
				// Also "$(git rev-parse --show-toplevel)/tool".
				for _, tree := range g.trees {
					path := filepath.Join(tree, word)
					named := strings.Contains(strings.TrimPrefix(word, "./"), "/")
					if policy.Contains(g.project, path) && (named || g.kind(path).IsRegular()) {
						add(path, one.key)
					}
				}
			}
		}
	}
	return found
}

// homes replaces what stands for the home directory in a line of the shell.
var homes = strings.NewReplacer("$HOME/", "~/", "${HOME}/", "~/", `"$HOME"/`, "~/", `"${HOME}"/`, "~/")

// wordsOf splits a line of the shell, quoted parts included.
func wordsOf(line string) []string {
	words := strings.FieldsFunc(line, func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("\"'`();&|<>=${}!,\\", r)
	})
	return words[:min(len(words), maxPrograms)]
}
