package agents

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// FileError says what is wrong in a user's file.
type FileError struct {
	File string
	Line int // 0: the file as a whole
	Text string
}

// Error names the file and the line.
func (e *FileError) Error() string {
	at := e.File
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
	}
	return fmt.Sprintf("%s: %s", display.Quote(at), e.Text)
}

// Parse reads a user's own set: JSON with comments. Anything unknown, and
// anything of another type, is a *FileError.
func Parse(name, file string, text []byte) (toolchain.Agent, error) {
	d := &decoder{file: file, text: text}
	a := toolchain.Agent{File: file, Toolchain: toolchain.Toolchain{
		Name: name, Agent: true, About: "An agent of your own.",
	}}
	root, err := hujson.Parse(append(bytes.Clone(text), '\n')) // a comment may be the last line
	if err != nil {
		at, cause := document.SyntaxError(err)
		return a, &FileError{File: file, Line: min(at.Line, d.lines()), Text: display.Line("not valid JSON: " + cause)}
	}
	object, is := root.Value.(*hujson.Object)
	if !is {
		return a, d.wrong(root, "expected an object")
	}
	seen := map[string]bool{}
	for _, member := range object.Members {
		key := member.Name.Value.(hujson.Literal).String()
		if seen[key] {
			return a, d.wrong(member.Name, "%s is written twice", display.Quote(key))
		}
		seen[key] = true
		if err := d.key(&a, key, member); err != nil {
			return a, err
		}
	}
	if a.Program == "" {
		return a, &FileError{File: file, Text: `"program" is missing`}
	}
	return a, nil
}

type decoder struct {
	file string
	text []byte
}

// keys are those of a file.
var keys = []string{"about", "program", "args", "state", "read", "hosts", "variables"}

func (d *decoder) key(a *toolchain.Agent, key string, member hujson.ObjectMember) error {
	switch key {
	case "$schema":
		return nil
	case "about":
		return d.word(member.Value, &a.About)
	case "program":
		return d.word(member.Value, &a.Program)
	case "args":
		a.Why = "your file for it says so"
		return d.each(member.Value, func(_ hujson.Value, text string) error {
			a.Args = append(a.Args, text)
			return nil
		})
	case "state", "read":
		return d.each(member.Value, func(value hujson.Value, text string) error {
			if !filepath.IsAbs(text) && !strings.HasPrefix(text, "~/") {
				return d.wrong(value, "%s: expected a path that begins with / or ~/", display.Quote(text))
			}
			place := toolchain.Place{
				At: text, Access: policy.Read, Line: d.line(value),
				Why: "the agent's configuration, which stays as it is",
			}
			if key == "state" {
				place = toolchain.State(text)
				place.Line = d.line(value)
			}
			a.Places = append(a.Places, place)
			return nil
		})
	case "hosts":
		return d.each(member.Value, func(value hujson.Value, text string) error {
			if _, err := hosts.ParseAllowed(text); err != nil {
				return d.wrong(value, "%s: %v", display.Quote(text), err)
			}
			a.Hosts = append(a.Hosts, toolchain.Registry{Host: text, Why: "a host of the agent"})
			return nil
		})
	case "variables":
		return d.each(member.Value, func(value hujson.Value, text string) error {
			if !resolve.IsName(text) {
				return d.wrong(value, "%s: expected the name of a variable", display.Quote(text))
			}
			if policy.IsHook(text) {
				return d.wrong(value, "%s: it can make programs run code that it names", display.Quote(text))
			}
			a.Passed = append(a.Passed, toolchain.Variable{Name: text, Why: "a variable of the agent"})
			return nil
		})
	}
	return d.wrong(member.Name, "unknown key %s, known are %s", display.Quote(key), strings.Join(keys, ", "))
}

// word reads a text that is not empty.
func (d *decoder) word(value hujson.Value, to *string) error {
	literal, is := value.Value.(hujson.Literal)
	if !is || literal.Kind() != '"' || literal.String() == "" {
		return d.wrong(value, "expected a text")
	}
	*to = literal.String()
	return nil
}

// each reads a list of texts.
func (d *decoder) each(value hujson.Value, take func(value hujson.Value, text string) error) error {
	array, is := value.Value.(*hujson.Array)
	if !is {
		return d.wrong(value, "expected a list of texts")
	}
	for _, element := range array.Elements {
		var text string
		if err := d.word(element, &text); err != nil {
			return err
		}
		if err := take(element, text); err != nil {
			return err
		}
	}
	return nil
}

// lines counts the lines of the file.
func (d *decoder) lines() int {
	return 1 + strings.Count(strings.TrimSuffix(string(d.text), "\n"), "\n")
}

func (d *decoder) line(value hujson.Value) int {
	return 1 + strings.Count(string(d.text[:value.StartOffset]), "\n")
}

func (d *decoder) wrong(value hujson.Value, format string, args ...any) error {
	return &FileError{File: d.file, Line: d.line(value), Text: fmt.Sprintf(format, args...)}
}
