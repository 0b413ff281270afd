//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

// defaultJSON is the built-in value of a dotted key as JSON. It is null if the
// default depends on the platform, the project or the kind of session; the
// key's comment says what null means.
func defaultJSON(key string) (json.RawMessage, error) {
	text, err := json.Marshal(settings.Defaults())
	if err != nil {
		return nil, fmt.Errorf("look up the default: of %s: %w", key, err)
	}
	for _, name := range strings.Split(key, ".") {
		// Below a null object every key is null too; Unmarshal leaves the map
		// empty then.
		var object map[string]json.RawMessage
		if err := json.Unmarshal(text, &object); err != nil {
			return nil, fmt.Errorf("look up the default: of %s: %w", key, err)
		}
		value, known := object[name]
		switch {
		case object == nil:
			return json.RawMessage("null"), nil
		case !known:
			return nil, fmt.Errorf("look up the default: of %s: no such key", key)
		}
		text = value
	}
	return text, nil
}
