package namespace

import (
	"encoding/json"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// Overlays are mounted over the caches of toolchains; see
// docs/design/cache-overlays.md.
type Overlays struct {
	// Dir is the directory of the holder, which has the mounts.
	Dir string
	// Paths are the real paths of the caches.
	Paths []string
}

// wireOverlays is the JSON form of Overlays.
type wireOverlays struct {
	Dir   handshake.RawString   `json:"dir"`
	Paths []handshake.RawString `json:"paths"`
}

// MarshalJSON keeps every byte of the paths; see handshake.RawString.
func (o Overlays) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireOverlays{Dir: handshake.RawString(o.Dir), Paths: handshake.RawStrings(o.Paths)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (o *Overlays) UnmarshalJSON(data []byte) error {
	var wire wireOverlays
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*o = Overlays{Dir: string(wire.Dir), Paths: handshake.PlainStrings(wire.Paths)}
	return nil
}
