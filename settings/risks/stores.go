package risks

import (
	"path"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// stores are such places beside caches, what sets of toolchains give, and versions
// of programs.
var stores = []string{
	"~/snap", "~/.var/app", "~/.local/share/containers", "~/.local/share/flatpak", "~/.vscode", "~/.vscode-server",
	"~/.vscode-oss", "~/.vscode-insiders", "~/.cursor-server", "~/.local/share/JetBrains", "~/.julia", "~/.stack",
	"~/.cabal", "~/.conda", "~/.ivy2", "~/.conan", "~/.conan2", "~/.vcpkg", "~/.platformio", "~/.arduino15",
	"~/.lmstudio", "~/.ollama", "~/.kde", "~/.kde4", "~/.pm2", "~/.local/share/code-server", "~/.vagrant.d",
	"~/.colima", "~/.lima", "~/node_modules", "~/.node_modules",
}

// withStores marks the places that programs fill by themselves.
func withStores(table []Place) []Place {
	for i := range table {
		place := &table[i]
		name := path.Base(place.Path)
		switch {
		case slices.Contains(stores, place.Path), strings.HasPrefix(place.Path, "~/.cache/"):
			place.Store = true
		case place.Secret == browser, place.Secret == messages, place.Secret == wallet, place.Secret == manager:
			place.Store = true
		case place.Acts == byPath:
			place.Store = !IsProgramDir(name)
		case place.Set != "" && place.Agent == "" && place.Set != "ssh":
			place.Store = true
		}
	}
	return table
}

// searches are variables that name lists of directories, or command lines: no place
// in which a program keeps its settings.
var searches = []string{
	"PATH", "EDITOR", "VISUAL", "PAGER", "BROWSER", "SHELL", "SSH_ASKPASS", "SUDO_ASKPASS", "GIT_ASKPASS",
	"GIT_EDITOR", "GIT_SSH", "GIT_SSH_COMMAND", "LD_PRELOAD", "LD_LIBRARY_PATH", "EMACSLOADPATH", "NODE_PATH",
	"PYTHONPATH", "RUBYLIB", "PERL5LIB", "GOBIN",
}

// Searches reports whether a variable names such a list.
func Searches(variable string) bool { return slices.Contains(searches, variable) }

// secretNames are usual names of files with secrets, some with their directory's. *
// stands for any characters.
var secretNames = []string{
	".kube/config",
	"credentials*", "*.key", "*.pem", "*.age", "*.p12", "*.pfx", "keys.txt", "*token*", "*secret*", "auth.json",
	"hosts.yml", "config.json", "*.kubeconfig", "kubeconfig", "id_*", "accessTokens.json", "*password*",
}

// IsSecretName reports whether a file at a path of that name usually holds a secret.
func IsSecretName(file string) bool {
	name := path.Base(file)
	return slices.ContainsFunc(secretNames, func(pattern string) bool {
		return policy.MatchName(pattern, name) || pattern == path.Base(path.Dir(file))+"/"+name
	})
}

// IsEnvFile reports whether a file of that name is one of variables, and no example.
func IsEnvFile(name string) bool {
	kind, is := strings.CutPrefix(name, ".env.")
	return name == ".env" || is && !slices.Contains([]string{
		"example", "sample", "template", "dist", "defaults", "schema",
	}, kind)
}

// IsProgramDir reports whether a directory of that name is one in which shells find
// programs.
func IsProgramDir(name string) bool { return name == "bin" || name == ".bin" }
