//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/overlay"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// cache lists or clears what sessions have written to caches of toolchains. A
// name is a toolchain or the path of a cache.
func cache(flags *flagSet, args []string) error {
	asJSON := flags.Bool("json", false, "print the list as JSON, for programs")
	if err := parse(flags, args); err != nil {
		return err
	}
	dir := places.Of(os.Getenv).Overlays()
	if flags.NArg() == 0 {
		stored, err := overlay.List(dir)
		if err != nil {
			return err
		}
		if *asJSON {
			return printStoredJSON(stored)
		}
		return printStored(stored)
	}
	switch {
	case flags.Arg(0) != "clear":
		return misuse(flags, "unexpected argument %s%s", quoted(flags.Arg(0)), meantWord(flags, flags.Arg(0)))
	case *asJSON:
		return misuse(flags, "--json is for the list of caches")
	}
	if err := refuseInside("cache clear"); err != nil {
		return err
	}
	names := flags.Args()[1:]
	paths, err := cachePaths(names)
	if err != nil {
		return misuse(flags, "%v", err)
	}
	cleared, err := overlay.Clear(context.Background(), dir, func(s overlay.Stored) bool {
		return len(names) == 0 || slices.Contains(paths, s.Path)
	})
	for _, s := range cleared {
		display.Fprintf(stdout, "cleared %s (%s)\n", quoted(s.Path), megabytes(s.Bytes, s.Partial))
	}
	if err == nil && len(cleared) == 0 {
		fmt.Fprintln(stdout, "nothing to clear")
	}
	return err
}

func printStored(stored []overlay.Stored) error {
	if len(stored) == 0 {
		fmt.Fprintln(stdout, "sessions have written no cache of a toolchain")
		return nil
	}
	out := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	var sum overlay.Stored
	for _, s := range stored {
		display.Fprintf(out, "%s\t%s\n", megabytes(s.Bytes, s.Partial), quoted(s.Path))
		sum.Bytes, sum.Partial = sum.Bytes+s.Bytes, sum.Partial || s.Partial
	}
	fmt.Fprintf(out, "%s\ttogether\n", megabytes(sum.Bytes, sum.Partial))
	return out.Flush()
}

// printStoredJSON prints the list for programs.
func printStoredJSON(stored []overlay.Stored) error {
	type cached struct {
		Path  string `json:"path"`
		Bytes int64  `json:"bytes"`
		// Partial: there may be more.
		Partial bool `json:"partial"`
	}
	list := []cached{}
	for _, s := range stored {
		list = append(list, cached{s.Path, s.Bytes, s.Partial})
	}
	return printJSON(list)
}

// megabytes is a size for people. partial says that it may be more.
func megabytes(bytes int64, partial bool) string {
	text := fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	if partial {
		return "at least " + text
	}
	return text
}

// cachePaths are the real paths that names may stand for.
func cachePaths(names []string) (paths []string, err error) {
	home, _ := os.UserHomeDir()
	here, _ := workingDir()
	for _, name := range names {
		t, known := toolchain.Find(name)
		if !known && !strings.Contains(name, "/") { // a user's own file for an agent
			agent, err := settings.FindAgent(name, here, os.Environ())
			var unknown *settings.UnknownAgentError
			if err != nil && !errors.As(err, &unknown) {
				return nil, err
			}
			t, known = agent.Toolchain, err == nil
		}
		switch {
		case known:
			for _, p := range t.Places {
				if p.Cache() {
					paths = append(paths, realPath(p.In(os.Getenv(p.Variable), home)))
				}
			}
		case strings.HasPrefix(name, "~/"):
			paths = append(paths, realPath(filepath.Join(home, name[2:])))
		case filepath.IsAbs(name):
			paths = append(paths, realPath(name))
		default:
			return nil, fmt.Errorf("%s is no toolchain, agent or absolute path", quoted(name))
		}
	}
	return paths, nil
}

// realPath is the path without symlinks; as it is, if it does not exist.
func realPath(path string) string {
	if real, err := fsguard.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}
