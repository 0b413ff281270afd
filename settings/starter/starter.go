// Package starter writes a user's first settings.
//
// [Look] finds out what the user has, and [Write] writes a settings file that
// turns the sandbox on. What is in a file already stays.
package starter

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// Choice is what the user wants.
type Choice struct {
	Mode    document.Mode
	ApplyTo document.ApplyTo
}

// Found is what the user has.
type Found struct {
	Toolchains []Toolchain
	// Agent reports whether there is an ssh agent.
	Agent bool
}

// Toolchain is the name of a toolchain, with the program that it was found by.
type Toolchain struct{ Name, Program string }

// signs are the programs that toolchains are found by.
var signs = []struct {
	toolchain string
	programs  []string
}{
	{"go", []string{"go"}},
	{"node", []string{"node", "npm", "bun", "deno"}},
	{"python", []string{"python3", "uv"}},
	{"rust", []string{"cargo", "rustc"}},
	{"java", []string{"java", "mvn", "gradle"}},
	{"ruby", []string{"ruby"}},
	{"dotnet", []string{"dotnet"}},
	{"php", []string{"php"}},
	{"c", []string{"ccache", "sccache", "conan"}},
	{"nix", []string{"nix"}},
}

// Look finds the user's toolchains and ssh agent.
func Look(environment func(string) string, program func(string) (string, error)) Found {
	var found Found
	for _, sign := range signs {
		for _, name := range sign.programs {
			if path, err := program(name); err == nil {
				found.Toolchains = append(found.Toolchains, Toolchain{sign.toolchain, path})
				break
			}
		}
	}
	if socket := environment("SSH_AUTH_SOCK"); filepath.IsAbs(socket) {
		info, err := fsguard.Stat(socket)
		found.Agent = err == nil && info.Mode().Type() == fs.ModeSocket
	}
	return found
}

func (f Found) names() []string {
	names := []string{}
	for _, t := range f.Toolchains {
		names = append(names, t.Name)
	}
	return names
}

// Text is a settings file with comments.
func (f Found) Text(c Choice) []byte {
	lines := []string{
		`// Settings of sandbox-sidecar, written by "sandbox-sidecar init".`,
		`// "sandbox-sidecar policy" prints what they mean; docs/settings.md has all keys.`,
		"{", `  "terminal": {`, `    "sandbox": {`,
	}
	add := func(format string, args ...any) { lines = append(lines, "      "+fmt.Sprintf(format, args...)) }
	add("// strict: no network, only the project. standard: the defaults.")
	add("// relaxed: the whole disk may be read, except hidden_paths. off: no sandbox.")
	add("\"mode\": %q,", c.Mode)
	add("// What is sandboxed: both, tool (what agents run), terminal, or neither.")
	add("\"apply_to\": %q,", c.ApplyTo)
	if len(f.Toolchains) > 0 {
		add("// Found on this machine. Each opens that language's tools and caches.")
		for _, t := range f.Toolchains {
			add("//   %s: %s", t.Name, display.Quote(t.Program))
		}
		comment := ""
		if c.Mode == document.ModeStrict {
			add("// The mode strict leaves them out, unless this counts:")
			comment = "// "
		}
		add("%s\"toolchains\": %s,", comment, list(f.names()))
	}
	if f.Agent {
		add("// For git over ssh, add \"ssh\" to \"toolchains\": known hosts and your agent.")
		add("// A session that may use your ssh agent can log in as you.")
	}
	add("// Agents without a network, terminals with one:")
	add(`// "tool": { "allow_network": false },`)
	lines = append(lines, "    },", "  },", "}", "")
	return []byte(strings.Join(lines, "\n"))
}

// members are the keys of the block, without comments.
func (f Found) members(c Choice) []document.Member {
	members := []document.Member{{Key: "mode", Text: fmt.Sprintf("%q", c.Mode)}}
	if c.ApplyTo != document.ApplyToBoth {
		members = append(members, document.Member{Key: applyTo, Text: fmt.Sprintf("%q", c.ApplyTo)})
	}
	if len(f.Toolchains) > 0 && c.Mode != document.ModeStrict {
		members = append(members, document.Member{Key: "toolchains", Text: list(f.names())})
	}
	return members
}

// list is a JSON list of names of toolchains, which need no escapes.
func list(names []string) string {
	return `["` + strings.Join(names, `", "`) + `"]`
}

// Written is what Write has written.
type Written struct {
	// Created reports whether the file is new.
	Created bool
	// Toolchains are those that the file lists since then.
	Toolchains []Toolchain
	// Beside are the keys that were in the file, and count more than the mode.
	Beside []string
}

// PasteError says why a file stays as it is, and what the user can paste.
type PasteError struct {
	File, Reason string
	// Text is the block to paste: a whole file where there is nothing yet.
	Text string
}

// Error says which file stays as it is, and why.
func (e *PasteError) Error() string {
	return fmt.Sprintf("turn on the sandbox: %s stays as it is: %s", display.Quote(e.File), e.Reason)
}

// Write writes the choice to a settings file. A file that exists keeps every
// byte, and gets the block if it has none; otherwise the error is a
// *PasteError.
func Write(path, platform string, f Found, c Choice) (Written, error) {
	paste := func(reason string, whole bool, more ...document.Member) (Written, error) {
		var keys []string
		for _, m := range append(f.members(c), more...) {
			keys = append(keys, fmt.Sprintf("%q: %s", m.Key, m.Text))
		}
		text := `"terminal": { "sandbox": { ` + strings.Join(keys, ", ") + ` } }`
		if whole {
			text = "{ " + text + " }"
		}
		return Written{}, &PasteError{File: path, Reason: reason, Text: text}
	}
	info, err := fsguard.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path, f.Text(c)); err != nil {
			return Written{}, err
		}
		return f.written(c, true, nil), nil
	}
	if err != nil {
		return Written{}, fmt.Errorf("turn on the sandbox: %w", err)
	}
	real, err := fsguard.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return paste("it is a symlink to a file that does not exist", true)
	}
	if err == nil {
		info, err = fsguard.Stat(real)
	}
	if err != nil {
		return Written{}, fmt.Errorf("turn on the sandbox: %w", err)
	}
	if info.IsDir() {
		const what = "turn on the sandbox: %s is a directory: remove it, or name a file with --settings"
		return Written{}, fmt.Errorf(what, display.Quote(path))
	}
	data, _, err := textfile.Read(real)
	if err != nil {
		return paste("it cannot be read: "+textfile.Cause(err), false)
	}
	changed, err := document.AddBlock(data, platform, f.members(c))
	if err != nil {
		return paste(err.Error(), errors.Is(err, document.ErrEmpty))
	}
	block, _ := document.Decode(data, platform, document.Editor) // AddBlock has read it, too
	if from, set := block.Spans[applyTo]; set && !covers(*block.Values.ApplyTo, c.ApplyTo) {
		reason := fmt.Sprintf("line %d says already what is sandboxed: %s is %q", from.At.Line, applyTo,
			*block.Values.ApplyTo)
		if c.ApplyTo != document.ApplyToBoth {
			return paste(reason, false)
		}
		return paste(reason, false, document.Member{Key: applyTo, Text: fmt.Sprintf("%q", c.ApplyTo)})
	}
	if err := fsguard.Replace(real, changed, info.Mode().Perm()); err != nil {
		return Written{}, fmt.Errorf("turn on the sandbox: %w", err)
	}
	return f.written(c, false, block), nil
}

const applyTo = "apply_to"

// covers reports whether an apply_to sandboxes all that is wanted.
func covers(has, wanted document.ApplyTo) bool {
	kinds, want := document.RestrictedKinds(true, has), document.RestrictedKinds(true, wanted)
	return kinds.Union(want) == kinds
}

// written is what the file has got. before is its block as it was; nil if the
// file is new.
func (f Found) written(c Choice, created bool, before *document.Block) Written {
	w := Written{Created: created}
	listed := false
	if before != nil {
		_, listed = before.Spans["toolchains"]
		w.Beside = before.Beside(c.Mode)
	}
	if !listed && c.Mode != document.ModeStrict {
		w.Toolchains = f.Toolchains
	}
	return w
}

// create makes a file that does not exist, for the user alone. It follows no
// symlink at its name.
func create(path string, text []byte) error {
	if err := fsguard.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("turn on the sandbox: %w", err)
	}
	if err := fsguard.Create(path, text, 0o600); err != nil {
		return fmt.Errorf("turn on the sandbox: %w", err)
	}
	return nil
}
