//go:build unix

package main

import (
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

type anyMap = map[string]any

// schemaSnippet is a text that VS Code's JSON language server offers in an empty
// place.
type schemaSnippet struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Body        any    `json:"body"`
}

// hint describes the entries of a list, beyond being strings.
type hint struct {
	pattern, message string
	examples         []string
}

// paths are absolute, begin with the home directory or a variable, or are
// relative, which is valid in a project's file.
var pathHint = hint{
	pattern: `^(~$|~/[^\x00]*$|[^~\x00][^\x00]*$)`, message: "A path: absolute, or from ~/ or $NAME; " +
		"relative only in a project's file. ~user does not count.",
}

func paths(examples ...string) hint {
	h := pathHint
	h.examples = examples
	return h
}

// hosts hints at the form of an entry, in any letters.
func hosts(examples ...string) hint {
	return hint{
		pattern: `^(\*\.)?[^*\s/:]+(:[0-9]+)?$|^[0-9.]+(/[0-9]+)?(:[0-9]+)?$|^\[?[0-9A-Fa-f:.]+(/[0-9]+)?(\]:[0-9]+)?$`,
		message: "NAME, *.NAME or ADDRESS/BITS, each with :PORT or without.", examples: examples,
	}
}

// schemaHints are the hints by key. A pattern must accept everything that the
// settings accept: users take a language server's warning for the program's.
var schemaHints = map[string]hint{
	"system_paths.executable":     paths("/usr/bin", "/usr/lib", "/opt"),
	"system_paths.read_only":      paths("/etc", "/usr/share", "/proc"),
	"system_paths.read_write":     paths("/tmp", "/dev/null"),
	"additional_executable_paths": paths("~/.local/bin", "/opt/tools"),
	"additional_read_only_paths":  paths("~/notes", "~/.ssh/known_hosts"),
	"additional_read_write_paths": paths("~/.cache/my-tool", "$XDG_CACHE_HOME/my-tool"),
	"hidden_paths":                paths(".env", "*.pem", "~/notes/private"),
	"protected_paths":             paths("secrets", "*.pem", "!.claude"),
	"allowed_env_vars": {
		pattern:  `^\+?[A-Za-z_][A-Za-z0-9_]*\*?$`,
		message:  "NAME, or PREFIX_* for every variable whose name begins so. With + before all entries the list adds.",
		examples: []string{"+NAME", "+LC_*", "PATH", "HOME", "LANG", "LC_*", "SSH_AUTH_SOCK"},
	},
	"allowed_hosts": hosts("github.com", "*.npmjs.org:443", "10.1.0.0/16:5432", "localhost:5432"),
	"denied_hosts":  hosts("telemetry.example.org", "*.example.net"),
	"credentials.hosts": {
		pattern: `^(\*\.)?[^*\s/:]+(:[0-9]+)?$`, message: "NAME or *.NAME, each with :PORT or without.",
		examples: []string{"api.github.com", "*.amazonaws.com", "ci.example.com:8443"},
	},
	"credentials.command": {
		pattern: `^[^\x00]*$`, message: "A program in PATH, or its absolute path, and then its arguments.",
		examples: []string{"pass", "show", "ci"},
	},
	"credentials.as": {
		pattern: `^[A-Za-z_][A-Za-z0-9_]*$`, message: "The name of a variable.", examples: []string{"CI_TOKEN"},
	},
	"shell": {
		pattern: `^[^\x00]*$`, message: "A program in PATH, or its absolute path, and then its arguments.",
		examples: []string{"zsh", "/bin/bash", "--norc"},
	},
	"allowed_unix_sockets": {
		pattern: `^(~/[^\x00]+|[^~\x00][^\x00]*)$`, message: "The path of a socket, $SSH_AUTH_SOCK, or abstract:NAME.",
		examples: []string{"$SSH_AUTH_SOCK", "/run/user/1000/gnupg/S.gpg-agent", "abstract:NAME"},
	},
	"signing_keys": {
		pattern: `^(ask:)?(\*|SHA256:[A-Za-z0-9+/]{43}|[0-9A-Fa-f]{40})$`,
		message: "SHA256:…, a keygrip of 40 hexadecimal digits, or *, with or without ask: before it.",
		examples: []string{
			"*", "ask:*", "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
			"ask:5C9E027F6F534FF59047F3F6B7E676A7B9EF8BA6",
		},
	},
}

// addHints describes the entries of a list in the schema.
func addHints(node *schemaNode, key string) error {
	if key == "limits.memory" {
		node.Pattern, node.Examples = settings.MemoryPattern, []any{"75%", "8G"}
		node.PatternErrorMessage = "64M or more, as \"512M\" or \"8G\", or \"1%\" to \"100%\""
	}
	if node.Items == nil {
		return nil
	}
	if key == "toolchains" {
		for _, t := range toolchain.All {
			node.Items.Enum = append(node.Items.Enum, t.Name)
			node.Items.EnumDescriptions = append(node.Items.EnumDescriptions, t.About)
		}
		return nil
	}
	h, known := schemaHints[key]
	if !known {
		return fmt.Errorf("describe setting %s: no hint for the entries of this list", key)
	}
	h.addTo(node.Items)
	return nil
}

func (h hint) addTo(node *schemaNode) {
	if node.Items != nil {
		node = node.Items
	}
	node.Pattern, node.PatternErrorMessage = h.pattern, h.message
	for _, example := range h.examples {
		node.Examples = append(node.Examples, example)
	}
}
