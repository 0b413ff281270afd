package acp

import (
	"encoding/json"
	"slices"
	"strings"
)

// outside reports whether an agent's request would make the editor run a command
// or open a file, which no sandbox of the agent holds. Version 2 of the protocol
// has none of them. It returns what the method begins with, or "".
func outside(method string) string {
	for _, prefix := range []string{"terminal/", "fs/"} {
		if len(method) >= len(prefix) && strings.EqualFold(method[:len(prefix)], prefix) {
			return prefix
		}
	}
	return ""
}

// terminalAuth is the key by which editors let an agent name a command for
// signing in, in "_meta" of capabilities and of methods to sign in.
const terminalAuth = "terminal-auth"

// authMethods is the key of methods to sign in: in the result of "initialize",
// and in errors that ask for it.
const authMethods = "authMethods"

// isTerminalAuth reports whether some parser takes a key for that.
func isTerminalAuth(key string, _ int) bool { return strings.EqualFold(key, terminalAuth) }

// hide takes from the parameters of "initialize" what the editor offers to do
// outside for the agent: its terminals, its files, and commands to sign in. An
// agent then does all of that itself, in its sandbox.
func hide(params json.RawMessage) json.RawMessage {
	s := strict{in: params, leave: isTerminalAuth}
	if err := s.read(); err != nil {
		return json.RawMessage("{}")
	}
	fields, is := objectOf(s.out)
	if !is {
		return json.RawMessage("{}") // an agent would not understand it either
	}
	var kept object
	for _, m := range fields {
		switch {
		case strings.EqualFold(m.key, "clientCapabilities"), strings.EqualFold(m.key, "capabilities"):
			// Of version 1, of version 2.
			kept = append(kept, member{m.key, hideCapabilities(m.value)})
		default:
			kept = append(kept, m)
		}
	}
	return kept.bytes()
}

func hideCapabilities(value json.RawMessage) json.RawMessage {
	fields, is := objectOf(value)
	if !is {
		return json.RawMessage("{}")
	}
	var kept object
	for _, m := range fields {
		switch {
		case strings.EqualFold(m.key, "terminal"), strings.EqualFold(m.key, "fs"):
			continue
		case strings.EqualFold(m.key, "auth"):
			auth, is := objectOf(m.value)
			if !is {
				continue
			}
			m.value = auth.withoutFold("terminal").bytes()
		}
		kept = append(kept, m)
	}
	return kept.bytes()
}

// safeMethods returns methods to sign in without those that are not the agent's
// own: the editor would run the command of some outside, or start this program
// with the variables of others. It returns nil if the value may stay.
func safeMethods(key string, value []byte) []byte {
	if !strings.EqualFold(key, authMethods) {
		return nil
	}
	methods, isObject, is := split(value)
	if isObject || !is {
		return []byte("[]")
	}
	kept := []json.RawMessage{}
	for _, m := range methods {
		fields, is := objectOf(m.value)
		if kind := fields.get("type"); !is || kind != nil && string(kind) != `"agent"` {
			continue
		}
		var method object
		for _, field := range fields {
			if slices.Contains([]string{"id", "name", "description", "type", "_meta"}, field.key) {
				method = append(method, field)
			}
		}
		kept = append(kept, method.bytes())
	}
	safe := encodeList(kept)
	if string(safe) == string(value) {
		return nil
	}
	return safe
}
