package resolve

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// maxPathLength is Linux's PATH_MAX without the final NUL; macOS has less.
// Without a bound a project's file could name paths that take minutes to walk,
// or repeat a long variable until memory is full.
const maxPathLength = 4095

var (
	errTooLong   = errors.New("longer than 4095 bytes, which no path may be") // maxPathLength
	errEmptyPath = errors.New("an empty path")
	// ErrNUL means that a path holds a NUL byte.
	ErrNUL       = errors.New("holds a NUL byte, which no file name does")
	errOtherHome = errors.New("~ can only mean your own home directory: write ~/ or an absolute path")
	errNoHome    = errors.New("the home directory is not known")
	errRelative  = errors.New("a relative path counts only in a project's settings")
)

// UnsetError is a variable without a value.
type UnsetError struct{ name string }

// Error names the variable.
func (e UnsetError) Error() string { return fmt.Sprintf("the variable %s is not set", e.name) }

// Expand makes a path of a settings file absolute: it replaces ~ and $VAR, and
// joins a relative path to base unless base is empty. The result may contain
// "." and "..", which only [View.Resolve] can judge.
func (h Host) Expand(text, base string) (string, error) {
	if strings.ContainsRune(text, 0) {
		return "", ErrNUL
	}
	path, err := h.expandVariables(text)
	if err != nil {
		return "", err
	}
	switch {
	case path == "":
		return "", errEmptyPath
	// A value that starts with a tilde is an ordinary name, as in shells.
	case path[0] == '~' && text[0] == '~':
		if path != "~" && path[1] != '/' {
			return "", errOtherHome
		}
		if h.Home == "" {
			return "", errNoHome
		}
		return h.Home + path[1:], nil
	case filepath.IsAbs(path):
		return path, nil
	case base != "":
		return base + "/" + path, nil
	default:
		return "", errRelative
	}
}

// expandVariables replaces $NAME and ${NAME}. Any other dollar sign stays.
func (h Host) expandVariables(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if out.Len() > maxPathLength {
			return "", errTooLong
		}
		if !found {
			return out.String(), nil
		}
		var name string
		if inner, ok := strings.CutPrefix(rest, "{"); ok {
			name, text, found = strings.Cut(inner, "}")
			if !found || !IsName(name) {
				return "", fmt.Errorf("expected ${NAME}, found %s", display.Quote("$"+rest))
			}
		} else {
			name = rest[:NameLength(rest)]
			text = rest[len(name):]
			if name == "" {
				out.WriteByte('$')
				continue
			}
		}
		value := h.Env[name]
		if value == "" {
			return "", UnsetError{name}
		}
		if strings.ContainsRune(value, 0) {
			return "", ErrNUL
		}
		out.WriteString(value)
	}
}

// IsName reports whether s is the name of a variable.
func IsName(s string) bool { return s != "" && NameLength(s) == len(s) }

// NameLength is the length of the variable name that s starts with.
func NameLength(s string) int {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || '9' < c) {
			return i
		}
	}
	return len(s)
}
