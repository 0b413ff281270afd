//go:build unix

package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed text/containers.md
var containersText string

// containerColumns are the kernels and contexts of tests/kernels with the places
// that they stand for.
var containerColumns = []struct{ kernel, context, place string }{
	{"6.12", "docker", "Docker"},
	{"6.12", "devcontainer", "dev container"},
	{"6.12", "ubuntu", "Ubuntu"},
	{"6.12", "podman", "rootless Podman"},
	{"6.12-wsl2", "user-plain", "WSL2"},
	{"6.12-wsl2", "user-delegated", "WSL2 with systemd"},
}

// containersReference is docs/containers.md: what is written by hand, and a
// matrix of what the last run of tests/kernels has found.
func containersReference(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, "tests", "kernels", "expected.txt"))
	if err != nil {
		return nil, err
	}
	found := map[string]string{} // by kernel, context and protection
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		for _, entry := range fields[2:] {
			name, status, is := strings.Cut(entry, "=")
			if is && !slices.Contains(names, name) {
				names = append(names, name)
			}
			found[fields[0]+" "+fields[1]+" "+name] = status
		}
	}
	var matrix strings.Builder
	matrix.WriteString("| protection |")
	for _, column := range containerColumns {
		matrix.WriteString(" " + column.place + " |")
	}
	matrix.WriteString("\n|---|" + strings.Repeat("---|", len(containerColumns)))
	for _, name := range names {
		fmt.Fprintf(&matrix, "\n| `%s` |", name)
		for _, column := range containerColumns {
			status := found[column.kernel+" "+column.context+" "+name]
			if status == "" {
				return nil, fmt.Errorf("no status of %s in %s on %s", name, column.context, column.kernel)
			}
			matrix.WriteString(" " + status + " |")
		}
	}
	whole := strings.Replace(containersText, "@MATRIX@", matrix.String(), 1)
	if len(names) == 0 || whole == containersText {
		return nil, fmt.Errorf("no matrix: %d protections", len(names))
	}
	return fmt.Appendf(nil, "<!-- %s -->\n\n%s", marker, whole), nil
}
