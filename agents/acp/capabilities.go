package acp

import (
	"bytes"
	"encoding/json"
	"strings"
)

// outside reports whether an agent's request would make the editor run a command
// or open a file, which no sandbox of the agent holds. Version 2 of the protocol
// has none of them.
func outside(method string) bool {
	return strings.HasPrefix(method, "terminal/") || strings.HasPrefix(method, "fs/")
}

// terminalAuth is the key by which editors let an agent name a command for
// signing in, in "_meta" of capabilities and of methods to sign in.
const terminalAuth = "terminal-auth"

// hide takes from the parameters of "initialize" what the editor offers to do
// outside for the agent: its terminals, its files, and commands to sign in. An
// agent then does all of that itself, in its sandbox.
func hide(params json.RawMessage) json.RawMessage {
	fields, err := parseObject(params)
	if err != nil {
		return json.RawMessage("{}") // an agent would not understand it either
	}
	for _, key := range []string{"clientCapabilities", "capabilities"} { // of version 1, of version 2
		offered := fields.get(key)
		if offered == nil {
			continue
		}
		capabilities, err := parseObject(offered)
		if err != nil {
			fields = fields.with(key, json.RawMessage("{}"))
			continue
		}
		capabilities = capabilities.without("terminal").without("fs")
		if auth, err := parseObject(capabilities.get("auth")); err == nil {
			capabilities = capabilities.with("auth", auth.without("terminal").bytes())
		}
		if meta, err := parseObject(capabilities.get("_meta")); err == nil {
			capabilities = capabilities.with("_meta", meta.without(terminalAuth).bytes())
		}
		fields = fields.with(key, capabilities.bytes())
	}
	return fields.bytes()
}

// withoutCommands takes from a result of "initialize" the methods to sign in
// that name a command or variables: the editor would run the one outside, or
// start this program with the others.
func withoutCommands(result json.RawMessage) json.RawMessage {
	if !bytes.Contains(result, []byte("authMethods")) && !bytes.Contains(result, []byte(`\u`)) {
		return result
	}
	fields, err := parseObject(result)
	if err != nil || fields.get("authMethods") == nil {
		return result
	}
	var methods []json.RawMessage
	if json.Unmarshal(fields.get("authMethods"), &methods) != nil {
		return fields.with("authMethods", json.RawMessage("[]")).bytes()
	}
	kept := []json.RawMessage{}
	changed := false
	for _, text := range methods {
		method, err := parseObject(text)
		if err != nil || method.text("type") == "terminal" {
			changed = true
			continue
		}
		for _, key := range []string{"command", "args", "env"} {
			if method.get(key) != nil {
				method, changed = method.without(key), true
			}
		}
		if value := method.get("_meta"); value != nil {
			meta, err := parseObject(value)
			if err != nil || meta.get(terminalAuth) != nil {
				method, changed = method.with("_meta", meta.without(terminalAuth).bytes()), true
			}
		}
		kept = append(kept, method.bytes())
	}
	if !changed {
		return result
	}
	return fields.with("authMethods", encode(kept)).bytes()
}
