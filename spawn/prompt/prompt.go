// Package prompt shows the user of an interactive shell what the session was
// refused, before the next prompt.
//
// A [Board] is a file with lines that no prompt has shown yet. The shell prints the
// file before its prompt, and empties it: [Environ] and [Argv] make bash, zsh and
// fish do that. So a line never falls into a program that draws on the screen. See
// docs/design/prompt-lines.md.
package prompt

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// mostLines bounds what is shown before one prompt.
	mostLines = 3
	// mostKnown bounds the refusals that are told apart before one prompt.
	mostKnown = 1000
	// variable names the file to the shell.
	variable = "SANDBOX_REFUSED"
)

// Board is what the next prompt shows. ID tells lines apart. Its methods may be
// called from several goroutines. They wait for no reader.
type Board[ID comparable] struct {
	path string

	mu      sync.Mutex // guards what follows
	file    *os.File   // nil once it is closed
	lines   []line[ID]
	known   map[ID]bool // of this prompt
	more    int         // did not fit into lines
	written int         // bytes in the file
}

type line[ID comparable] struct {
	id   ID
	text string
}

// New makes a board in a directory that the session can write. It must be made
// before the session starts: from then on it writes by its descriptor alone, and
// what the session puts at the path is none of its concern.
func New[ID comparable](dir string) (*Board[ID], error) {
	path := filepath.Join(dir, "refused")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make board of refusals: %w", err)
	}
	return &Board[ID]{path: path, file: file}, nil
}

// Path is where the session reads it.
func (b *Board[ID]) Path() string { return b.path }

// Add shows a text before the next prompt, unless that shows id already. The text
// must be safe to print, and may have several lines.
func (b *Board[ID]) Add(id ID, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return
	}
	b.forgetShown()
	if b.known[id] || len(b.known) == mostKnown {
		return
	}
	b.known[id] = true
	if len(b.lines) < mostLines {
		b.lines = append(b.lines, line[ID]{id, text})
	} else {
		b.more++
	}
	b.write()
}

// Replace replaces the text of id, if no prompt has shown it yet.
func (b *Board[ID]) Replace(id ID, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return
	}
	b.forgetShown()
	at := slices.IndexFunc(b.lines, func(l line[ID]) bool { return l.id == id })
	if at < 0 || b.lines[at].text == text {
		return
	}
	b.lines[at].text = text
	b.write()
}

// Pending lists the ids of the texts that no prompt has shown yet.
func (b *Board[ID]) Pending() []ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	b.forgetShown()
	var list []ID
	for _, l := range b.lines {
		list = append(list, l.id)
	}
	return list
}

// Close gives the file back. Nothing is shown any more.
func (b *Board[ID]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file != nil {
		b.file.Close()
		b.file = nil
	}
}

// forgetShown begins anew if the shell has emptied the file. b.mu is held.
func (b *Board[ID]) forgetShown() {
	info, err := b.file.Stat()
	if err == nil && info.Size() == 0 || b.known == nil {
		b.lines, b.known, b.more, b.written = nil, map[ID]bool{}, 0, 0
	}
}

// write puts the texts into the file. A shell that reads or empties it meanwhile may
// show a text twice, or leave one to the end of the session. b.mu is held.
func (b *Board[ID]) write() {
	var content strings.Builder
	for _, l := range b.lines {
		content.WriteString(l.text + "\n")
	}
	if b.more > 0 {
		least := ""
		if len(b.known) == mostKnown {
			least = "at least "
		}
		fmt.Fprintf(&content, "sandbox-sidecar: and %s%d more refused\n", least, b.more)
	}
	// What was there is covered by line ends, which the shell takes away.
	if rest := b.written - content.Len(); rest > 0 {
		content.WriteString(strings.Repeat("\n", rest))
	}
	// On a full disk the refusals are told when the shell ends.
	if n, err := b.file.WriteAt([]byte(content.String()), 0); err == nil {
		b.written = n
	}
}

var shells = []string{"bash", "zsh", "fish"}

// Shows reports whether a program is a shell that shows a board.
func Shows(program string) bool { return slices.Contains(shells, name(program)) }

// name is a program's name without the sign of a login shell and its version.
func name(program string) string {
	return strings.TrimRight(strings.TrimPrefix(filepath.Base(program), "-"), "0123456789.")
}

//go:embed bash.sh
var bash string

//go:embed fish.fish
var fish string

// Environ are the variables that make a shell show the board at a path. own is the
// PROMPT_COMMAND that the session would have without it; "" for none. zsh reads the
// start-up file of package history.
func Environ(path, own string) []string {
	// Without a line end: start-up files add "; …" to it.
	command := strings.TrimRight(bash, "\n")
	if own != "" {
		command += "\n" + own
	}
	return []string{variable + "=" + path, "PROMPT_COMMAND=" + command}
}

// Argv are the arguments of a shell that shows a board: fish has no variable for it.
func Argv(program string, argv []string) []string {
	if name(program) != "fish" || len(argv) == 0 {
		return argv
	}
	return slices.Concat(argv[:1], []string{"--init-command", fish}, argv[1:])
}
