package risks

import (
	"path"
	"slices"
	"strings"
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
		case place.Acts == byPath:
			place.Store = !IsProgramDir(name)
		case place.Set != "" && place.Agent == "" && place.Set != "ssh":
			place.Store = true
		}
	}
	return table
}

// IsProgramDir reports whether a directory of that name is one in which shells find
// programs.
func IsProgramDir(name string) bool { return name == "bin" || name == ".bin" }
