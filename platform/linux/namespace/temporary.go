package namespace

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Temporary puts directories of the project's own in the place of directories
// that all programs share, such as /tmp; see docs/design/temporary-files.md.
type Temporary struct {
	Dirs []TemporaryDir
}

// TemporaryDir is one such directory.
type TemporaryDir struct {
	Path   string
	Source string
	// Back are the paths below Path that the session uses as they are outside.
	// None of them lies below another.
	Back []string
	// Optional is true if the session can start without. Then Path may also be
	// a file.
	Optional bool
	// Needed: if Path is there, and Source is not, the session does not start. Nor
	// does it if Path has become a symlink.
	Needed bool
}

// PlanTemporary returns the mounts for a policy; nil if there are none.
func PlanTemporary(p *policy.Policy) *Temporary {
	if len(p.Temporary)+len(p.Replaced) == 0 {
		return nil
	}
	temporary, granted := &Temporary{}, grantedPaths(p)
	for _, t := range p.Temporary {
		temporary.Dirs = append(temporary.Dirs, TemporaryDir{
			Path: t.Path, Source: t.Source, Back: granted.below(t.Path),
		})
	}
	for _, r := range p.Replaced {
		temporary.Dirs = append(temporary.Dirs, TemporaryDir{
			Path: r.Path, Source: r.Source, Optional: true, Needed: r.Needed,
		})
	}
	return temporary
}

// granted are the paths and sockets that a policy grants, sorted, each once.
type granted []string

func grantedPaths(p *policy.Policy) granted {
	var paths []string
	for _, rule := range p.Rules {
		paths = append(paths, rule.Path)
	}
	for _, socket := range p.UnixSockets {
		paths = append(paths, socket.Path)
		for _, r := range p.Replaced {
			if r.Source == socket.Path { // it can be put only onto what is there
				paths = append(paths, r.Path)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// below lists those below a directory. None of them lies below another.
func (g granted) below(dir string) []string {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	first, _ := slices.BinarySearch(g, prefix)
	var topmost []string
	isTopmost := map[string]bool{}
	for _, path := range g[first:] {
		if !strings.HasPrefix(path, prefix) {
			break
		}
		if path != dir && !hasAbove(isTopmost, path) {
			topmost = append(topmost, path)
			isTopmost[path] = true
		}
	}
	return topmost
}

// hasAbove reports whether a set has a path or a directory above it.
func hasAbove(set map[string]bool, path string) bool {
	for dir := range policy.Upwards(path) {
		if set[dir] {
			return true
		}
	}
	return false
}

// wireTemporary is the JSON form of a TemporaryDir.
type wireTemporary struct {
	Path     handshake.RawString   `json:"path"`
	Source   handshake.RawString   `json:"source"`
	Back     []handshake.RawString `json:"back,omitempty"`
	Optional bool                  `json:"optional,omitempty"`
	Needed   bool                  `json:"needed,omitempty"`
}

// MarshalJSON keeps every byte of the paths; see handshake.RawString.
func (t TemporaryDir) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireTemporary{
		Path: handshake.RawString(t.Path), Source: handshake.RawString(t.Source), Back: handshake.RawStrings(t.Back),
		Optional: t.Optional, Needed: t.Needed,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *TemporaryDir) UnmarshalJSON(data []byte) error {
	var wire wireTemporary
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*t = TemporaryDir{
		Path: string(wire.Path), Source: string(wire.Source), Back: handshake.PlainStrings(wire.Back),
		Optional: wire.Optional, Needed: wire.Needed,
	}
	return nil
}
