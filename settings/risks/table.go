package risks

// SSHKeys is what ~/.ssh holds. An agent can use them for a session.
const SSHKeys = "SSH keys"

const (
	clusters   = "credentials of Kubernetes clusters"
	registries = "tokens of package registries"
	passwords  = "passwords of package registries"
	databases  = "passwords of databases"
	terraform  = "tokens of Terraform"
	keyring    = "the desktop's key ring"
	browser    = "a browser's cookies and passwords"
	container  = "passwords of container registries"
)

// secrets give their readers power elsewhere. Those of another platform never
// exist.
var secrets = []Place{
	{
		Path: "~/.ssh", Secret: SSHKeys, Acts: "ssh outside obeys it, and lets in whose keys it lists", Set: "ssh",
		Plain: []string{"known_hosts", "known_hosts2", "allowed_signers", "config", "*.pub"},
	},
	{
		Path: "~/.gnupg", Secret: "GnuPG keys", Acts: "GnuPG outside obeys it",
		Plain: []string{"gpg.conf", "gpg-agent.conf", "pubring.kbx", "trustdb.gpg"},
	},
	{
		Path: "~/.aws", Secret: "keys of Amazon's cloud", Acts: "its tools run the programs that it names",
		Plain: []string{"config"},
	},
	{Path: "~/.azure", Secret: "tokens of Microsoft's cloud", Plain: []string{"config"}},
	{Path: "~/.config/gcloud", Secret: "tokens of Google's cloud"},
	{Path: "~/.config/doctl", Secret: "tokens of DigitalOcean"},
	{Path: "~/.kube", Secret: clusters, Acts: "kubectl runs the programs that it names"},
	{Path: "~/.docker", Secret: container, Acts: "docker runs the programs that it names"},
	{Path: "~/.config/gh", Secret: "tokens of GitHub", Acts: "gh runs the aliases in it"},
	{Path: "~/.config/glab-cli", Secret: "tokens of GitLab"},
	{Path: "~/.config/hub", Secret: "tokens of GitHub"},
	{Path: "~/.git-credentials", Secret: "passwords of git servers"},
	{Path: "~/.config/git/credentials", Secret: "passwords of git servers"},
	{Path: "~/.netrc", Secret: "passwords of servers"},
	{Path: "~/.npmrc", Secret: registries, Acts: "npm outside obeys it"},
	{Path: "~/.yarnrc.yml", Secret: registries, Acts: "yarn outside runs the plugins that it names"},
	{Path: "~/.pypirc", Secret: registries},
	{Path: "~/.cargo/credentials.toml", Secret: registries},
	{Path: "~/.cargo/credentials", Secret: registries},
	{Path: "~/.gem/credentials", Secret: registries},
	{Path: "~/.m2/settings.xml", Secret: passwords, Acts: "Maven outside obeys it"},
	{Path: "~/.gradle/gradle.properties", Secret: passwords, Acts: "Gradle outside starts the Java that it names"},
	{Path: "~/.composer/auth.json", Secret: registries},
	{Path: "~/.config/composer/auth.json", Secret: registries},
	{Path: "~/.nuget/NuGet/NuGet.Config", Secret: passwords},
	{Path: "~/.terraform.d/credentials.tfrc.json", Secret: terraform},
	{Path: "~/.terraformrc", Secret: terraform},
	{Path: "~/.pgpass", Secret: databases},
	{Path: "~/.my.cnf", Secret: databases},
	{Path: "~/.vault-token", Secret: "a token of Vault"},
	{Path: "~/.config/rclone", Secret: "passwords of cloud storage"},
	{Path: "~/.config/op", Secret: "sessions of a password manager"},
	{Path: "~/.password-store", Secret: "passwords"},
	{Path: "~/.local/share/keyrings", Secret: keyring},
	{Path: "~/.local/share/kwalletd", Secret: keyring},
	{Path: "~/.mozilla", Secret: browser},
	{Path: "~/.config/google-chrome", Secret: browser},
	{Path: "~/.config/chromium", Secret: browser},
	{Path: "~/Library/Keychains", Secret: "the key chain"},
	{Path: "~/Library/Application Support/Google/Chrome", Secret: browser},
	{Path: "~/Library/Application Support/Firefox", Secret: browser},
}

var shells = acted(byShells,
	"~/.bashrc", "~/.bash_profile", "~/.bash_login", "~/.bash_logout", "~/.bash_aliases", "~/.profile", "~/.inputrc",
	"~/.zshrc", "~/.zshenv", "~/.zprofile", "~/.zlogin", "~/.zlogout", "~/.zimrc", "~/.oh-my-zsh", "~/.config/zsh",
	"~/.kshrc", "~/.mkshrc", "~/.tcshrc", "~/.cshrc", "~/.login", "~/.logout", "~/.config/fish", "~/.config/nushell",
	"~/.config/powershell", "~/.config/xonsh", "~/.xonshrc", "~/.config/elvish", "~/.config/direnv",
	"~/.config/starship.toml", "~/.config/mise", "~/.local/share/fish/vendor_conf.d",
)

// sessions are what a login or a desktop starts by itself.
var sessions = acted(byLogin,
	"~/.config/autostart", "~/.config/autostart-scripts", "~/.config/plasma-workspace", "~/.config/systemd",
	"~/.local/share/systemd", "~/.config/environment.d", "~/.pam_environment", "~/.xinitrc", "~/.xsession",
	"~/.xsessionrc", "~/.xprofile", "~/.Xresources", "~/.xserverrc", "~/.config/upstart",
	"~/.local/share/dbus-1", "~/.local/share/applications", "~/.config/mimeapps.list", "~/.gnomerc",
	"~/.local/share/gnome-shell", "~/.local/share/plasma", "~/.config/i3", "~/.i3", "~/.config/sway", "~/.config/hypr",
	"~/.config/bspwm", "~/.config/sxhkd", "~/.config/awesome", "~/.config/qtile", "~/.xmonad", "~/.config/xmonad",
	"~/.config/waybar", "~/.config/polybar", "~/.config/openbox", "~/.config/river", "~/.config/niri",
	"~/.local/share/nautilus", "~/.config/cron", "~/.crontab", "~/Library/LaunchAgents",
)

// programs are directories that PATH usually names.
var programs = acted(byPath,
	"~/bin", "~/.local/bin", "~/.bin", "~/.cargo/bin", "~/go/bin", "~/.npm-global", "~/.local/lib", "~/.deno/bin",
	"~/.bun/bin", "~/.yarn/bin", "~/.local/share/pnpm", "~/.dotnet/tools", "~/.krew/bin", "~/.composer/vendor/bin",
	"~/.config/composer/vendor/bin", "~/.cabal/bin", "~/.ghcup", "~/.opam", "~/.rbenv", "~/.rvm", "~/.pyenv", "~/.nvm",
	"~/.fnm", "~/.nodenv", "~/.volta", "~/.asdf", "~/.local/share/mise", "~/.sdkman", "~/.jenv",
	"~/.goenv", "~/.rustup",
	"~/.linuxbrew", "~/.nix-profile", "~/.local/state/nix", "~/.luarocks", "~/.pixi/bin", "~/.local/share/uv",
	"~/.local/pipx", "~/.local/share/pipx", "~/miniconda3", "~/anaconda3", "~/miniforge3",
)

// tools are what single programs obey.
var tools = concat(
	acted(byGit, "~/.gitconfig", "~/.config/git", "~/.gitmodules", "~/.git-templates", "~/.githooks"),
	acted("hg outside runs the programs that it names", "~/.hgrc", "~/.config/hg"),
	acted("jj outside runs the programs that it names", "~/.jjconfig.toml", "~/.config/jj"),
	acted(byTerminal, "~/.tmux.conf", "~/.config/tmux", "~/.tmux", "~/.screenrc", "~/.config/zellij", "~/.config/kitty",
		"~/.config/alacritty", "~/.alacritty.toml", "~/.wezterm.lua", "~/.config/wezterm", "~/.config/ghostty",
		"~/.config/foot"),
	acted(byDebugger, "~/.gdbinit", "~/.config/gdb", "~/.lldbinit", "~/.pdbrc"),
	acted("Python outside runs it", "~/.pythonrc", "~/.pythonrc.py", "~/.pydistutils.cfg", "~/.ipython", "~/.jupyter"),
	acted("pip outside obeys it", "~/.config/pip", "~/.pip", "~/.config/uv", "~/.config/pypoetry"),
	acted("cargo outside runs the programs that it names", "~/.cargo/config.toml", "~/.cargo/config", "~/.cargo/env"),
	acted("go outside obeys it", "~/.config/go"),
	acted("Ruby outside runs it", "~/.irbrc", "~/.pryrc", "~/.gemrc", "~/.bundle"),
	acted("Gradle outside runs it", "~/.gradle/init.d", "~/.gradle/init.gradle", "~/.gradle/init.gradle.kts"),
	acted("Maven outside obeys it", "~/.m2/settings-security.xml", "~/.mavenrc", "~/.m2/extensions.xml"),
	acted("programs outside run it when they start", "~/.Rprofile", "~/.julia/config", "~/.ghci",
		"~/.ghc", "~/.iex.exs",
		"~/.psqlrc", "~/.sqliterc", "~/.config/mpv", "~/.mailcap", "~/.lesskey", "~/.config/lesskey", "~/.forward",
		"~/.procmailrc", "~/.muttrc", "~/.config/mutt", "~/.config/neomutt", "~/.config/lazygit", "~/.config/ranger",
		"~/.config/yazi", "~/.config/nnn", "~/.config/containers", "~/.config/nix", "~/.config/home-manager",
		"~/.config/nixpkgs", "~/.sbt", "~/.config/lf"),
)

var editors = concat(
	acted(byEditor, "~/.vimrc", "~/.vim", "~/.gvimrc", "~/.exrc", "~/.config/vim", "~/.config/nvim",
		"~/.local/share/nvim",
		"~/.emacs", "~/.emacs.d", "~/.config/emacs", "~/.doom.d", "~/.config/doom", "~/.spacemacs", "~/.config/zed",
		"~/.local/share/zed", "~/.config/helix", "~/.config/kak", "~/.config/micro", "~/.config/nano", "~/.nanorc",
		"~/.vscode", "~/.vscode-server", "~/.vscode-oss", "~/.vscode-insiders", "~/.config/Code", "~/.config/VSCodium",
		"~/.config/Code - OSS", "~/.config/Code - Insiders", "~/.cursor-server", "~/.config/Cursor", "~/.windsurf",
		"~/.config/Windsurf", "~/.config/sublime-text", "~/.config/JetBrains",
		"~/.local/share/JetBrains", "~/.ideavimrc",
		"~/.config/lapce", "~/Library/Application Support/Code", "~/Library/Application Support/Cursor",
		"~/Library/Application Support/Zed", "~/Library/Application Support/JetBrains"),
)

// agents act on hooks, lists of servers and instructions.
var agents = []Place{
	agent("Claude Code", "claude", "~/.claude"),
	agent("Claude Code", "claude", "~/.claude.json"),
	agent("Claude Code", "claude", "~/.config/claude"),
	agent("Codex", "codex", "~/.codex"),
	agent("Gemini CLI", "gemini", "~/.gemini"),
	agent("OpenCode", "opencode", "~/.config/opencode"),
	agent("OpenCode", "opencode", "~/.local/share/opencode"),
	{Path: "~/.opencode", Acts: actsAgent("OpenCode"), Set: "opencode"}, // the program
	agent("Copilot CLI", "copilot", "~/.copilot"),
	{Path: "~/.config/github-copilot", Secret: "a token of Copilot", Acts: actsAgent("Copilot")},
	agent("aider", "aider", "~/.aider"),
	agent("aider", "aider", "~/.aider.conf.yml"),
	agent("aider", "aider", "~/.aider.model.settings.yml"),
	agent("Cursor", "", "~/.cursor"),
	agent("Qwen Code", "", "~/.qwen"),
	agent("Kiro", "", "~/.kiro"),
	agent("Factory Droid", "", "~/.factory"),
	agent("Junie", "", "~/.junie"),
	agent("Kilo Code", "", "~/.kilocode"),
	agent("Roo Code", "", "~/.roo"),
	agent("Amazon Q", "", "~/.amazonq"),
	agent("Continue", "", "~/.continue"),
	agent("goose", "", "~/.config/goose"),
	agent("Crush", "", "~/.config/crush"),
	agent("Amp", "", "~/.config/amp"),
	agent("Codeium", "", "~/.codeium"),
}

func actsAgent(name string) string { return name + " outside runs the servers and hooks that it names" }

func agent(name, set, path string) Place {
	return Place{Path: path, Acts: actsAgent(name), Set: set, Agent: name}
}

// machine is what mostly only root can write.
var machine = concat(acted(byMachine,
	"/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/boot", "/nix", "/snap", "/var/spool/cron",
	"/var/spool/at", "/Library", "/System", "/Applications", "/private/etc", "/private/var/at",
), acted(byPath, "/opt/homebrew", "/home/linuxbrew"))
