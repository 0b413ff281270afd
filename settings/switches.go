package settings

import (
	"encoding/json"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// Switch is a key of a single value, with the value that counts and its origin.
type Switch struct {
	Key string
	// Value is JSON.
	Value  string
	Origin policy.Origin
}

// switches lists the keys that decide about a policy beside its lists.
func (e *evaluation) switches(kind document.Kind) []Switch {
	var list []Switch
	if mode := e.merged.Mode; mode != nil {
		list = append(list, Switch{Key: "mode", Value: fmt.Sprintf("%q", *mode), Origin: e.originOf("mode")})
	}
	for _, s := range []struct {
		key   string
		value any
	}{
		{"enabled", *e.merged.Enabled},
		{"apply_to", *e.merged.ApplyTo},
		{"allow_network", e.policy.Network.Allowed},
		{cachesKey, *e.merged.ToolchainCaches},
		{"on_unavailable", e.onUnavailable(kind)},
		{"on_denied", e.policy.OnDenied},
	} {
		value, err := json.Marshal(s.value)
		if err != nil {
			panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal %s: %v", s.key, err))
		}
		list = append(list, Switch{Key: s.key, Value: string(value), Origin: e.originOf(s.key)})
	}
	return list
}

// originOf is the origin of the value of a key as a whole.
func (e *evaluation) originOf(key string) policy.Origin {
	if e.project != nil && e.origins[key] == e.projectFile {
		return e.project.originOf(key)
	}
	return e.user.originOf(key)
}
