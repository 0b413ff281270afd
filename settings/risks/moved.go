package risks

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// moved is a variable that says where a place is.
type moved struct {
	variable string
	// usual is the path that it stands for: that of a place, one above places, or
	// one in a place.
	usual string
	// name limits it to places whose name directly below usual matches; "" for
	// all.
	name string
	// options are those of a command line that name the path. Other words of it say
	// nothing about the place. Without options each absolute path does.
	options []string
}

// variables move places. What an empty or missing one means is the usual path.
// Some hold a list of paths, or a command line.
var variables = []moved{
	{variable: "XDG_CONFIG_HOME", usual: "~/.config"},
	{variable: "XDG_DATA_HOME", usual: "~/.local/share"},
	{variable: "XDG_STATE_HOME", usual: "~/.local/state"},
	{variable: "XDG_CACHE_HOME", usual: "~/.cache"},
	{variable: "XDG_BIN_HOME", usual: "~/.local/bin"},
	{variable: "PATH", usual: "~/.local/bin"},

	// Shells, and what they start.
	{variable: "ZDOTDIR", usual: "~", name: ".z*"},
	{variable: "ZSH", usual: "~/.oh-my-zsh"},
	{variable: "ZIM_HOME", usual: "~/.zim"},
	{variable: "BASH_ENV", usual: "~/.bashrc"},
	{variable: "ENV", usual: "~/.profile"},
	{variable: "INPUTRC", usual: "~/.inputrc"},
	{variable: "DIRENV_CONFIG", usual: "~/.config/direnv"},
	{variable: "STARSHIP_CONFIG", usual: "~/.config/starship.toml"},
	{variable: "MISE_CONFIG_DIR", usual: "~/.config/mise"},
	{variable: "MISE_DATA_DIR", usual: "~/.local/share/mise"},
	{variable: "LESSOPEN", usual: "~/.lessfilter"},
	{variable: "LESSKEYIN", usual: "~/.lesskey"},
	{variable: "RIPGREP_CONFIG_PATH", usual: "~/.ripgreprc"},
	{variable: "SCREENRC", usual: "~/.screenrc"},
	{variable: "KITTY_CONFIG_DIRECTORY", usual: "~/.config/kitty"},
	{variable: "WEZTERM_CONFIG_FILE", usual: "~/.wezterm.lua"},
	{variable: "ZELLIJ_CONFIG_DIR", usual: "~/.config/zellij"},
	{variable: "HISTFILE", usual: "~/.bash_history"},

	// Programs that others start.
	{variable: "EDITOR", usual: "~/.local/bin"},
	{variable: "VISUAL", usual: "~/.local/bin"},
	{variable: "PAGER", usual: "~/.local/bin"},
	{variable: "BROWSER", usual: "~/.local/bin"},
	{variable: "SHELL", usual: "~/.local/bin"},
	{variable: "SSH_ASKPASS", usual: "~/.local/bin"},
	{variable: "SUDO_ASKPASS", usual: "~/.local/bin"},
	{variable: "GIT_ASKPASS", usual: "~/.local/bin"},
	{variable: "GIT_EDITOR", usual: "~/.local/bin"},
	{variable: "GIT_SSH", usual: "~/.local/bin"},
	{variable: "GIT_SSH_COMMAND", usual: "~/.local/bin"},
	{variable: "LD_PRELOAD", usual: "~/.local/lib"},
	{variable: "LD_LIBRARY_PATH", usual: "~/.local/lib"},

	// Editors.
	{variable: "VIMINIT", usual: "~/.vimrc"},
	{variable: "EXINIT", usual: "~/.exrc"},
	{variable: "MYVIMRC", usual: "~/.vimrc"},
	{variable: "DOOMDIR", usual: "~/.doom.d"},
	{variable: "EMACSLOADPATH", usual: "~/.emacs.d"},
	{variable: "VSCODE_PORTABLE", usual: "~/.config/Code"},
	{variable: "VSCODE_EXTENSIONS", usual: "~/.vscode"},

	// Version control.
	{variable: "GIT_CONFIG_GLOBAL", usual: "~/.gitconfig"},
	{variable: "GIT_CONFIG_SYSTEM", usual: "~/.gitconfig"},
	{variable: "GIT_TEMPLATE_DIR", usual: "~/.git-templates"},
	{variable: "GIT_EXEC_PATH", usual: "~/.githooks"},
	{variable: "HGRCPATH", usual: "~/.hgrc"},
	{variable: "JJ_CONFIG", usual: "~/.jjconfig.toml"},
	{variable: "GH_CONFIG_DIR", usual: "~/.config/gh"},
	{variable: "GLAB_CONFIG_DIR", usual: "~/.config/glab-cli"},

	// Agents.
	{variable: "CODEX_HOME", usual: "~/.codex"},
	{variable: "CLAUDE_CONFIG_DIR", usual: "~/.claude"},
	{variable: "COPILOT_HOME", usual: "~/.copilot"},
	{variable: "GEMINI_CLI_HOME", usual: "~", name: ".gemini"},
	{variable: "OPENCODE_CONFIG", usual: "~/.config/opencode"},
	{variable: "OPENCODE_CONFIG_DIR", usual: "~/.config/opencode"},
	{variable: "AIDER_CONFIG_FILE", usual: "~/.aider.conf.yml"},

	// Keys and clouds.
	{variable: "GNUPGHOME", usual: "~/.gnupg"},
	{variable: "PASSWORD_STORE_DIR", usual: "~/.password-store"},
	{variable: "XAUTHORITY", usual: "~/.Xauthority"},
	{variable: "KUBECONFIG", usual: "~/.kube/config"},
	{variable: "DOCKER_CONFIG", usual: "~/.docker"},
	{variable: "REGISTRY_AUTH_FILE", usual: "~/.config/containers/auth.json"},
	{variable: "HELM_CONFIG_HOME", usual: "~/.config/helm"},
	{variable: "HELM_DATA_HOME", usual: "~/.local/share/helm"},
	{variable: "HELM_REGISTRY_CONFIG", usual: "~/.config/helm/registry"},
	{variable: "AWS_CONFIG_FILE", usual: "~/.aws/config"},
	{variable: "AWS_SHARED_CREDENTIALS_FILE", usual: "~/.aws/credentials"},
	{variable: "AZURE_CONFIG_DIR", usual: "~/.azure"},
	{variable: "CLOUDSDK_CONFIG", usual: "~/.config/gcloud"},
	{variable: "GOOGLE_APPLICATION_CREDENTIALS", usual: "~/.config/gcloud"},
	{variable: "TF_CLI_CONFIG_FILE", usual: "~/.terraformrc"},
	{variable: "RCLONE_CONFIG", usual: "~/.config/rclone"},
	{variable: "SOPS_AGE_KEY_FILE", usual: "~/.config/sops"},
	{variable: "NETRC", usual: "~/.netrc"},
	{variable: "PGPASSFILE", usual: "~/.pgpass"},
	{variable: "PGSERVICEFILE", usual: "~/.pg_service.conf"},
	{variable: "PSQLRC", usual: "~/.psqlrc"},
	{variable: "VAGRANT_HOME", usual: "~/.vagrant.d"},
	{variable: "ANSIBLE_CONFIG", usual: "~/.ansible.cfg"},
	{variable: "ANSIBLE_HOME", usual: "~/.ansible"},

	// Languages.
	{variable: "CARGO_HOME", usual: "~/.cargo"},
	{variable: "RUSTUP_HOME", usual: "~/.rustup"},
	{variable: "GOPATH", usual: "~/go"},
	{variable: "GOBIN", usual: "~/go/bin"},
	{variable: "GOENV", usual: "~/.config/go/env"},
	{variable: "GOMODCACHE", usual: "~/go/pkg"},
	{variable: "GOCACHE", usual: "~/.cache/go-build"},
	{variable: "npm_config_userconfig", usual: "~/.npmrc"},
	{variable: "NPM_CONFIG_USERCONFIG", usual: "~/.npmrc"},
	{variable: "npm_config_globalconfig", usual: "~/.npmrc"},
	{variable: "NPM_CONFIG_GLOBALCONFIG", usual: "~/.npmrc"},
	{variable: "npm_config_prefix", usual: "~/.npm-global"},
	{variable: "NPM_CONFIG_PREFIX", usual: "~/.npm-global"},
	{variable: "npm_config_cache", usual: "~/.npm"},
	{variable: "NPM_CONFIG_CACHE", usual: "~/.npm"},
	{variable: "NODE_PATH", usual: "~/.node_modules"},
	{variable: "PNPM_HOME", usual: "~/.local/share/pnpm"},
	{variable: "BUN_INSTALL", usual: "~/.bun"},
	{variable: "DENO_INSTALL", usual: "~/.deno"},
	{variable: "DENO_DIR", usual: "~/.cache/deno"},
	{variable: "NVM_DIR", usual: "~/.nvm"},
	{variable: "FNM_DIR", usual: "~/.fnm"},
	{variable: "VOLTA_HOME", usual: "~/.volta"},
	{variable: "ASDF_DATA_DIR", usual: "~/.asdf"},
	{variable: "PIP_CONFIG_FILE", usual: "~/.config/pip/pip.conf"},
	{variable: "UV_CONFIG_FILE", usual: "~/.config/uv/uv.toml"},
	{variable: "PYTHONSTARTUP", usual: "~/.pythonrc"},
	{variable: "PYTHONPATH", usual: "~/.pythonrc"},
	{variable: "PYTHONUSERBASE", usual: "~/.local"},
	{variable: "PYENV_ROOT", usual: "~/.pyenv"},
	{variable: "IPYTHONDIR", usual: "~/.ipython"},
	{variable: "JUPYTER_CONFIG_DIR", usual: "~/.jupyter"},
	{variable: "JUPYTER_DATA_DIR", usual: "~/.local/share/jupyter"},
	{variable: "CONDARC", usual: "~/.condarc"},
	{variable: "CONDA_ENVS_PATH", usual: "~/.conda"},
	{variable: "CONDA_ENVS_DIRS", usual: "~/.conda"},
	{variable: "GEM_HOME", usual: "~/.gem"},
	{variable: "BUNDLE_USER_HOME", usual: "~/.bundle"},
	{variable: "BUNDLE_USER_CONFIG", usual: "~/.bundle"},
	{variable: "RBENV_ROOT", usual: "~/.rbenv"},
	{variable: "RUBYLIB", usual: "~/.irbrc"},
	{variable: "IRBRC", usual: "~/.irbrc"},
	{variable: "PERL5LIB", usual: "~/perl5"},
	{variable: "COMPOSER_HOME", usual: "~/.config/composer"},
	{variable: "GRADLE_USER_HOME", usual: "~/.gradle"},
	{
		variable: "MAVEN_ARGS", usual: "~/.m2/settings.xml",
		options: []string{"-s", "--settings", "-gs", "--global-settings"},
	},
	{variable: "SDKMAN_DIR", usual: "~/.sdkman"},
	{variable: "NUGET_PACKAGES", usual: "~/.nuget/packages"},
	{variable: "DOTNET_ROOT", usual: "~/.dotnet"},
	{variable: "R_PROFILE_USER", usual: "~/.Rprofile"},
	{variable: "R_ENVIRON_USER", usual: "~/.Renviron"},
	{variable: "JULIA_DEPOT_PATH", usual: "~/.julia"},
	{variable: "STACK_ROOT", usual: "~/.stack"},
	{variable: "OPAMROOT", usual: "~/.opam"},
	{variable: "MIX_HOME", usual: "~/.mix"},
	{variable: "CURL_HOME", usual: "~", name: ".curlrc"},
	{variable: "WGETRC", usual: "~/.wgetrc"},
}

// made is what In has returned last. All evaluations of a process ask for the same.
var made struct {
	mu    sync.Mutex // guards the fields below
	of    []string   // the values of variables, and the home directories
	table []Place
}

// In is the table in home directories, by absolute paths; theirs are clean. A
// place that a variable moves is there twice: where it usually is, and where the
// variable says. getenv reads the environment of programs outside. The table is not
// to be changed: the next call may return the same. Several goroutines may call In.
func In(homes []string, getenv func(name string) string) []Place {
	values := make([]string, 0, len(variables))
	for _, m := range variables {
		values = append(values, getenv(m.variable))
	}
	of := slices.Concat(values, homes)
	made.mu.Lock()
	known, table := slices.Equal(made.of, of), made.table
	made.mu.Unlock()
	if known {
		return table
	}
	table = in(homes, values)
	made.mu.Lock()
	defer made.mu.Unlock()
	made.of, made.table = of, table
	return table
}

// in makes the table. values are those of variables.
func in(homes, values []string) []Place {
	list := make([]Place, 0, len(All())*max(1, len(homes)))
	for _, place := range All() {
		below, inHome := strings.CutPrefix(place.Path, "~")
		if !inHome {
			list = append(list, place)
			continue
		}
		for _, home := range homes {
			place.Path = strings.TrimSuffix(home, "/") + below
			list = append(list, place)
		}
	}
	for i, m := range variables {
		for _, path := range pathsIn(m.words(values[i]), homes) {
			isUsual := func(home string) bool { return path == filepath.Join(home, strings.TrimPrefix(m.usual, "~")) }
			if !slices.ContainsFunc(homes, isUsual) {
				list = append(list, m.at(path)...)
			}
		}
	}
	return slices.Clip(list)
}

// maxMoved bounds the paths of one variable.
const maxMoved = 64

// words are the parts of the variable's value that may be paths. A path may have
// spaces, unless it is in a command line with options.
func (m moved) words(value string) (words []string) {
	if len(m.options) == 0 {
		return slices.Concat(filepath.SplitList(value), strings.FieldsFunc(value, separates))
	}
	next := false
	for _, word := range strings.Fields(value) {
		if next {
			words, next = append(words, word), false
			continue
		}
		for _, option := range m.options {
			path, is := strings.CutPrefix(word, option)
			if next = next || is && path == ""; is {
				words = append(words, strings.TrimPrefix(path, "="))
			}
		}
	}
	return words
}

// pathsIn are the absolute paths among words.
func pathsIn(words, homes []string) (paths []string) {
	add := func(path string) {
		path = filepath.Clean(path)
		// Nobody keeps all that in the root directory.
		if filepath.IsAbs(path) && path != "/" && !slices.Contains(paths, path) && len(paths) < maxMoved {
			paths = append(paths, path)
		}
	}
	for _, word := range words {
		below, inHome := strings.CutPrefix(word, "~/")
		if !inHome {
			add(word)
			continue
		}
		for _, home := range homes {
			add(filepath.Join(home, below))
		}
	}
	return paths
}

func separates(r rune) bool { return strings.ContainsRune(": \t\n|'\"=,", r) }

// at are the places that the variable moves to a path.
func (m moved) at(path string) (list []Place) {
	innermost := Place{}
	for _, place := range All() {
		below, is := strings.CutPrefix(place.Path, m.usual+"/")
		switch {
		case is && (m.name == "" || policy.MatchName(m.name, strings.SplitN(below, "/", 2)[0])):
			place.Path, place.Variable = filepath.Join(path, below), m.variable
			list = append(list, place)
		case (place.Path == m.usual || strings.HasPrefix(m.usual, place.Path+"/")) &&
			len(place.Path) > len(innermost.Path):
			innermost = place
		}
	}
	if innermost.Path != "" {
		innermost.Path, innermost.Variable = path, m.variable
		list = append(list, innermost)
	}
	return list
}
