//go:build unix

package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed text/containers.md
var containersText string

// containerKernel is the kernel of the matrix, and containerColumns are the
// contexts of tests/kernels with the places that they stand for.
const containerKernel = "6.12"

var containerColumns = []struct{ context, place string }{
	{"container", "Docker"},
	{"user-no-namespaces", "Ubuntu"},
	{"user-plain", "with user namespaces"},
	{"user-delegated", "and a delegated cgroup"},
}

// containersReference is docs/containers.md: what is written by hand, and a
// matrix of what the last run of tests/kernels has found.
func containersReference(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, "tests", "kernels", "expected.txt"))
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]string{} // protection to context to status
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != containerKernel {
			continue
		}
		for _, entry := range fields[2:] {
			name, status, _ := strings.Cut(entry, "=")
			if found[name] == nil {
				found[name], names = map[string]string{}, append(names, name)
			}
			found[name][fields[1]] = status
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
			status := found[name][column.context]
			if status == "" {
				return nil, fmt.Errorf("no status of %s in %s on %s", name, column.context, containerKernel)
			}
			matrix.WriteString(" " + status + " |")
		}
	}
	whole := strings.Replace(containersText, "@MATRIX@", matrix.String(), 1)
	if len(names) == 0 || whole == containersText {
		return nil, fmt.Errorf("no matrix: %d protections on %s", len(names), containerKernel)
	}
	return fmt.Appendf(nil, "<!-- %s -->\n\n%s", marker, whole), nil
}
