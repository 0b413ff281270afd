//go:build unix

package owner

import (
	"path/filepath"
	"slices"
	"strings"
)

// What a program does for those that it starts is known by its name alone: the
// kernel does not say it.

// adopters are the programs that become the parent of processes whose own parent
// has ended (PR_SET_CHILD_SUBREAPER), and that run as long as their user is there.
var adopters = []string{
	"systemd", "init", "tini", "docker-init", "dumb-init", "catatonit", "s6-svscan", "runsvdir", "supervisord",
	"containerd-shim", "containerd-shim-runc-v2", "conmon",
}

func (p Process) adopts() bool { return slices.Contains(adopters, p.name()) }

// servers start commands for several agents, and for their user, as children of one
// process.
var servers = []string{
	// editors
	"code", "code-insiders", "code-oss", "code-server", "openvscode-server", "codium", "vscodium", "cursor",
	"windsurf", "positron", "trae", "kiro", "antigravity", "void", "zed", "zed-editor", "zeditor", "hx", "helix",
	"vi", "view", "gvim", "kak", "micro", "nano", "subl", "sublime_text", "kate", "kdevelop", "gedit",
	"gnome-builder", "geany", "lapce", "pulsar", "atom", "theia", "qtcreator", "eclipse", "netbeans", "rstudio",
	"rsession", "spyder",
	// IDEs of JetBrains, and Android Studio
	"idea", "pycharm", "webstorm", "phpstorm", "goland", "clion", "rubymine", "rider", "datagrip", "dataspell",
	"rustrover", "aqua", "fleet", "studio",
	// what starts commands for all logins, terminals or times
	"sshd", "sshd-session", "dropbear", "tmux", "screen", "SCREEN", "zellij", "cron", "crond", "atd", "dbus-daemon",
	"gnome-shell", "gnome-session-binary", "plasmashell", "ksmserver", "xfce4-session",
}

// serverPrefixes begin the names of such programs: emacs-29.4, vim.basic, nvim-qt.
var serverPrefixes = []string{"emacs", "vim", "nvim", "plugin_host"}

// serverArguments are those of the processes in which editors run their extensions,
// and of IDEs that are started as a program of Java.
var serverArguments = []string{
	"--type=extensionHost", "--vscode-utility-kind=extension-host", "--utility-sub-type=node.mojom.NodeService",
	"com.intellij.idea.Main",
}

// serves reports whether a process starts commands for several agents.
func (p Process) serves() bool {
	name := p.name()
	if slices.Contains(servers, name) ||
		slices.ContainsFunc(serverPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return true
	}
	if words := p.script(); len(words) > 0 && !p.isShell() && slices.Contains(servers, filepath.Base(words[0])) {
		return true
	}
	// Chromium makes one argument of all of them.
	return slices.ContainsFunc(strings.Fields(strings.Join(p.Argv, " ")), func(word string) bool {
		return slices.Contains(serverArguments, word)
	})
}

// wrappers run one command, and end with it.
var wrappers = []string{
	"timeout", "time", "env", "nice", "ionice", "nohup", "stdbuf", "setsid", "setarch", "strace", "ltrace", "flock",
	"script", "chrt", "taskset", "numactl", "prlimit", "setpriv", "sudo", "doas", "su", "runuser", "chroot",
	"unshare", "nsenter", "systemd-inhibit", "dbus-run-session", "fakeroot", "proot", "rlwrap", "codex-linux-sandbox",
	"bwrap", "firejail",
}

// launchers are wrappers that may be scripts, by the first word of their arguments
// that is no option. With nil every such word will do.
var launchers = map[string][]string{
	"npm": {"exec", "x"}, "npm-cli.js": {"exec", "x"}, "npx": nil, "npx-cli.js": nil,
	"pnpm": {"exec", "dlx"}, "pnpm.cjs": {"exec", "dlx"}, "pnpx": nil, "pnpx.cjs": nil,
	"yarn": {"exec", "dlx"}, "yarn.js": {"exec", "dlx"}, "bun": {"x"}, "bunx": nil,
	"uv": {"run", "tool"}, "uvx": nil, "poetry": {"run"}, "pipenv": {"run"}, "pdm": {"run"}, "hatch": {"run"},
	"conda": {"run"}, "mamba": {"run"}, "mise": {"exec", "x"}, "direnv": {"exec"}, "asdf": {"exec"}, "bundle": {"exec"},
	"nix": {"develop", "shell", "run"}, "nix-shell": nil, "xvfb-run": nil, "unbuffer": nil, "chronic": nil, "srt": nil,
}

// wraps reports whether a process runs one command, and ends with it.
func (p Process) wraps() bool {
	words := p.words()
	if len(words) == 0 {
		return false
	}
	if slices.Contains(wrappers, p.name()) || launches(p.name(), words[1:]) {
		return true
	}
	script := p.script()
	return len(script) > 0 && launches(filepath.Base(script[0]), script[1:])
}

func launches(name string, args []string) bool {
	first, known := launchers[name]
	if !known || first == nil {
		return known
	}
	at := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	return at >= 0 && slices.Contains(first, args[at])
}

// interpreters run a script that their arguments name; shells do, too.
var interpreters = []string{"node", "nodejs", "python", "ruby", "perl", "expect", "tclsh"}

// codeOptions are those of interpreters with the program as their value, so that no
// script is named.
var codeOptions = []string{"-c", "-e", "-E", "-p", "--eval", "--print"}

// script is the script that an interpreter runs, with its arguments. It is nil if
// none is known.
func (p Process) script() []string {
	words := p.words()
	if len(words) == 0 {
		return nil
	}
	args, shell := words[1:], p.isShell()
	isInterpreter := slices.ContainsFunc(interpreters, func(name string) bool { return isVersionOf(p.name(), name) })
	if !shell && !isInterpreter || shell && runsText(p.name(), args) {
		return nil
	}
	for i, arg := range args {
		switch {
		case !strings.HasPrefix(arg, "-"):
			return args[i:]
		case shell:
		case arg == "-m": // a module of Python
			return args[i+1:]
		case slices.Contains(codeOptions, arg):
			return nil
		}
	}
	return nil
}

// isVersionOf reports whether a name is that of a program, with or without a
// version, such as python3.13.
func isVersionOf(name, program string) bool {
	version, found := strings.CutPrefix(name, program)
	return found && strings.Trim(version, "0123456789.") == ""
}

// shells are programs that run what follows -c.
var shells = []string{
	"sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "oksh", "fish", "ash", "busybox", "rbash", "yash", "csh",
	"tcsh", "nu", "elvish", "osh",
}

func (p Process) isShell() bool { return slices.Contains(shells, p.name()) }

// wordOptions are the long options of shells that have the next word as their
// value, without the hyphens.
var wordOptions = []string{
	// bash, and zsh
	"rcfile", "init-file", "emulate",
	// fish, and nu
	"init-command", "debug-output", "debug", "features", "profile", "profile-startup", "config", "env-config",
}

// plainOptions are long options of bash, for which one hyphen is enough. Their
// letters are no options.
var plainOptions = []string{
	"norc", "noprofile", "noediting", "login", "posix", "restricted", "protected", "verbose", "version", "help",
	"debugger", "dump-strings", "dump-po-strings", "pretty-print", "wordexp",
}

// letterOptions are the letters that have a value. It is the next word, or, if
// joined, what follows in the same word, if there is anything.
func letterOptions(shell string) (letters string, joined bool) {
	switch shell {
	case "fish":
		return "CDdfop", true
	case "zsh", "ksh", "ksh93", "mksh", "oksh":
		return "o", true
	case "nu":
		return "emt", false
	default:
		return "oO", false
	}
}

// runsText reports whether a shell's arguments have -c before a script's name.
func runsText(shell string, args []string) bool {
	if shell == "busybox" {
		if len(args) == 0 || !slices.Contains(shells, args[0]) {
			return false
		}
		shell, args = args[0], args[1:]
	}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name := strings.TrimLeft(arg, "-")
		values := 0 // words that belong to the option
		switch {
		case arg == "--" || len(arg) < 2 || arg[0] != '-' && arg[0] != '+':
			return false
		case strings.HasPrefix(arg, "--command"): // of fish and nu, also "=LINE"
			return true
		case slices.Contains(wordOptions, name):
			values = 1
		case strings.HasPrefix(arg, "--"), slices.Contains(plainOptions, name):
		default:
			var text bool
			if text, values = readLetters(shell, arg); text {
				return true
			}
		}
		args = args[min(values, len(args)):]
	}
	return false
}

// readLetters reads an argument of options that are letters: whether -c is among
// them, and how many of the next words are values.
func readLetters(shell, arg string) (text bool, values int) {
	valued, joined := letterOptions(shell)
	for i, letter := range arg[1:] {
		switch {
		case letter == 'c' && arg[0] == '-':
			return true, 0
		case !strings.ContainsRune(valued, letter):
		case joined && i+2 < len(arg):
			return false, values
		default:
			values++
		}
	}
	return false, values
}
