package namespace

import (
	"encoding/json"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Hidden keeps paths from a session; see docs/design/hidden-paths.md.
type Hidden struct {
	Paths []HiddenPath
}

// HiddenPath is one path that the session does not see.
type HiddenPath struct {
	Path string
	// Back are the paths below Path that are granted. None of them lies below
	// another.
	Back []string
}

// PlanHidden returns the mounts for a policy; nil if there are none. A path
// below another hidden one needs none of its own, unless it lies in what is
// mounted back.
func PlanHidden(p *policy.Policy) *Hidden {
	hidden, granted := &Hidden{}, grantedPaths(p)
	for _, h := range p.Hidden {
		if !isReplaced(p, h.Path) {
			hidden.Paths = append(hidden.Paths, HiddenPath{Path: h.Path, Back: granted.below(h.Path)})
		}
	}
	if len(hidden.Paths) == 0 {
		return nil
	}
	return hidden
}

// wireHidden is the JSON form of a HiddenPath.
type wireHidden struct {
	Path handshake.RawString   `json:"path"`
	Back []handshake.RawString `json:"back,omitempty"`
}

// MarshalJSON keeps every byte of the paths; see handshake.RawString.
func (h HiddenPath) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireHidden{Path: handshake.RawString(h.Path), Back: handshake.RawStrings(h.Back)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *HiddenPath) UnmarshalJSON(data []byte) error {
	var wire wireHidden
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*h = HiddenPath{Path: string(wire.Path), Back: handshake.PlainStrings(wire.Back)}
	return nil
}
